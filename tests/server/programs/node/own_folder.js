// A file beside the program's own.
const fs = require('fs');
fs.writeFileSync(require('path').join(__dirname, 'beside.txt'), 'text');
console.log(fs.existsSync('beside.txt'));
