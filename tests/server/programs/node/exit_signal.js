// A program that kills itself, by a signal that nobody handles.
console.log('before');
process.kill(process.pid, 'SIGTERM');
setTimeout(() => {}, 10000);
