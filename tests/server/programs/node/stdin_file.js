// readFileSync reads standard input by its descriptor.
const text = require('fs').readFileSync(0, 'utf8');
console.log(JSON.stringify(text), text.length);
