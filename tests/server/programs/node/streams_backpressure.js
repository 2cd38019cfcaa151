// write() says when to wait, and drain when to go on.
const { Writable } = require('stream');
const slow = new Writable({ highWaterMark: 3, write(chunk, _, done) { setTimeout(done, 1); } });
console.log(slow.write('ab'), slow.write('cd'), slow.writableLength);
slow.once('drain', () => { console.log('drain'); slow.end(); });
slow.on('finish', () => console.log('finish'));
