// fork() of the program itself, with messages both ways.
const { fork } = require('child_process');
if (process.argv[2] === 'child') {
  process.on('message', (m) => { process.send(m * 2); process.disconnect(); });
} else {
  const child = fork(__filename, ['child']);
  child.on('message', (m) => console.log('from the child', m));
  child.on('exit', (code, signal) => console.log(code, signal));
  child.send(21);
}
