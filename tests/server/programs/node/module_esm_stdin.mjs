// A module reads standard input with top-level await.
let text = '';
for await (const chunk of process.stdin) text += chunk;
console.log(text.trim().split('\n').map(Number).sort((a, b) => a - b));
