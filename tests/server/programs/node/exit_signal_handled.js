// A signal handler ends the program with a status of its own.
process.on('SIGTERM', (name, number) => {
  console.log('got', name, number);
  process.exit(9);
});
setTimeout(() => process.kill(process.pid, 'SIGTERM'), 10);
setInterval(() => {}, 1000);
