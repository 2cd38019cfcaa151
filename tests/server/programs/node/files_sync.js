// Descriptors: positions, truncation, exclusive creation, a temporary folder.
const fs = require('fs');
const os = require('os');
const path = require('path');
const fd = fs.openSync('f', 'wx+');
fs.writeSync(fd, 'abcdef');
fs.writeSync(fd, 'XY', 2);
fs.ftruncateSync(fd, 5);
const buffer = Buffer.alloc(10);
console.log(fs.readSync(fd, buffer, 0, 10, 0), buffer.toString('latin1', 0, 5));
fs.closeSync(fd);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'x-'));
fs.rmdirSync(folder);
console.log(fs.existsSync(folder), os.EOL === '\n', path.resolve('a/../b') === path.join(process.cwd(), 'b'));
fs.openSync('f', 'wx');
