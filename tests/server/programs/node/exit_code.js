// process.exitCode is the status after all work has ended.
process.exitCode = 3;
setTimeout(() => console.log('still works'), 10);
