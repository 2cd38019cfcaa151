// The process as the program sees it.
console.log(process.platform, process.title, process.cwd() === process.env.HOME, process.getuid(), typeof process.umask(), process.uptime() < 60);
console.log(Object.keys(process.env).filter((name) => name.startsWith('HEARTH') || name.startsWith('NODE')), process.exitCode, process.connected, process.stdin.fd);
process.chdir('/tmp');
console.log(process.cwd(), process.emitWarning.length, process.memoryUsage().rss > 0, process.hrtime.bigint() > 0n);
process.emitWarning('careful', 'OddWarning', 'ODD1');
