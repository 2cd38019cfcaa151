// Children: exec, execFileSync, spawn with pipes, an error's status.
const { exec, execFileSync, spawn, spawnSync } = require('child_process');
console.log(execFileSync('printf', ['%s-', 'a', 'b']).toString());
console.log(spawnSync('sh', ['-c', 'echo err >&2; exit 4']).status);
exec('echo $HOME; exit 3', (error, stdout) => {
  console.log(error.code, stdout.trim());
  const tr = spawn('tr', ['a-z', 'A-Z']);
  tr.stdout.on('data', (data) => console.log(String(data)));
  tr.on('close', (code, signal) => console.log('closed', code, signal));
  tr.stdin.end('through a pipe');
});
