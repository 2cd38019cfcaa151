// readFileSync reads standard input by its name.
const [n, ...rest] = require('fs').readFileSync('/dev/stdin', 'utf8').trim().split(/\s+/).map(Number);
console.log(n, Math.max(...rest.slice(0, n)));
