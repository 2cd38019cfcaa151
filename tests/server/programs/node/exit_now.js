// process.exit() ends at once: no timers, but the exit listeners.
setTimeout(() => console.log('never'), 0);
process.on('exit', (code) => console.log('exit', code, process.exitCode));
console.log('before');
process.exit(7);
