// A child with inherited streams, and one that cannot be started.
const { spawn } = require('child_process');
const child = spawn('sh', ['-c', 'cat; echo to stderr >&2; kill -9 $$'], { stdio: 'inherit' });
child.on('exit', (code, signal) => {
  console.log(code, signal);
  spawn('no-such-program').on('error', (error) => console.log(error.code, error.syscall));
});
