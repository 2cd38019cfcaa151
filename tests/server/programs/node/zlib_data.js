// zlib: gzip, deflate, brotli, a broken stream.
const zlib = require('zlib');
const data = Buffer.from('again and '.repeat(500));
for (const name of ['gzip', 'deflateRaw', 'brotliCompress']) console.log(name, zlib[name + 'Sync'](data).length < 100);
console.log(zlib.inflateRawSync(zlib.deflateRawSync(data)).equals(data), zlib.brotliDecompressSync(zlib.brotliCompressSync('é')).toString());
zlib.gunzip(Buffer.from('no gzip'), (error) => console.log(error.code, error.message));
