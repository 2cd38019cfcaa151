// for await over readline, as judges' solutions do.
const readline = require('readline');

(async () => {
  let sum = 0;
  for await (const line of readline.createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    sum += line.split(' ').map(Number).reduce((a, b) => a + b, 0);
  }
  console.log(sum);
})();
