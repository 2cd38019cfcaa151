// A judge's task: the shortest way through a grid from standard input.
const lines = require('fs').readFileSync(0, 'utf8').trim().split('\n');
const [h, w] = lines[0].split(' ').map(Number);
const grid = lines.slice(1, h + 1);
const seen = new Set(['0,0']);
let front = [[0, 0]];
for (let steps = 0; front.length; steps++) {
  const next = [];
  for (const [y, x] of front) {
    if (y === h - 1 && x === w - 1) { console.log(steps); process.exit(); }
    for (const [a, b] of [[y + 1, x], [y, x + 1], [y - 1, x], [y, x - 1]]) {
      if (grid[a]?.[b] === '.' && !seen.has(`${a},${b}`)) { seen.add(`${a},${b}`); next.push([a, b]); }
    }
  }
  front = next;
}
console.log('IMPOSSIBLE');
