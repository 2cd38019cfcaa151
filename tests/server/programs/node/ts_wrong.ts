// TypeScript that does not parse says so, and nothing runs.
console.log('never');
const x: = 1;
