// A question of readline/promises writes its text to standard output.
const { createInterface } = require('readline/promises');

(async () => {
  const rl = createInterface({ input: process.stdin, output: process.stdout });
  const name = await rl.question('Name? ');
  console.log(`Hello ${name}`);
  rl.close();
})();
