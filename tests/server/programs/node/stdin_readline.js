// readline gives the lines of standard input in order, by events.
const rl = require('readline').createInterface({ input: process.stdin });
const lines = [];
rl.on('line', (line) => lines.push(line));
rl.on('close', () => console.log(lines.length, lines.reverse().join('|')));
