// crypto: digests, HMAC, ciphers, key derivation, signatures.
const crypto = require('crypto');
console.log(crypto.createHash('sha256').update('é').digest('hex').slice(0, 16), crypto.createHmac('md5', 'k').update('x').digest('base64'));
const key = crypto.scryptSync('p', 's', 32, { N: 16 });
const cipher = crypto.createCipheriv('aes-256-gcm', key, Buffer.alloc(12));
const sealed = Buffer.concat([cipher.update('secret'), cipher.final()]);
const open = crypto.createDecipheriv('aes-256-gcm', key, Buffer.alloc(12)).setAuthTag(cipher.getAuthTag());
console.log(sealed.toString('hex'), open.update(sealed) + open.final());
const { publicKey, privateKey } = crypto.generateKeyPairSync('ed25519');
console.log(crypto.verify(null, Buffer.from('m'), publicKey, crypto.sign(null, Buffer.from('m'), privateKey)), crypto.randomUUID().length);
crypto.subtle.digest('SHA-1', new TextEncoder().encode('x')).then((d) => console.log(Buffer.from(d).toString('hex')));
