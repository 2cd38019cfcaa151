// Child processes of the program's file find what it finds, also by a shell, with options, and from another directory.
const { execFileSync, execSync, fork, spawn, spawnSync } = require('child_process');
const fs = require('fs');
const node = process.execPath;

if (process.argv[2] === 'child') {
  const found = [require('./lib').v, require('tool'), process.argv.slice(3), process.execArgv];
  import('./esm.mjs').then(({ v }) => console.log(JSON.stringify([...found, v, process.env.NODE_OPTIONS, process.env.OTHER,
    Object.keys(process.env).some((name) => name.startsWith('HEARTH_'))])));
} else if (process.argv[2] === 'again') {
  console.log(spawnSync(node, [__filename, 'child', 'again'], { encoding: 'utf8' }).stdout.trim());
} else if (process.argv[2] === 'wrong') {
  require('./lib').nothing.x;
} else {
  fs.writeFileSync('lib.js', 'exports.v = 1;');
  fs.writeFileSync('esm.mjs', 'export const v = 2;');
  fs.mkdirSync('node_modules/tool', { recursive: true });
  fs.writeFileSync('node_modules/tool/index.js', 'module.exports = "tool";');
  fs.writeFileSync('other.js', 'console.log(process.env.NODE_OPTIONS, process.execArgv, process.argv.length);');
  const show = (output) => process.stdout.write(String(output));
  show(execFileSync(node, ['--no-warnings', __filename, 'child', 'options'], { env: { OTHER: '3' } }));
  show(execFileSync(node, [__filename, 'child', 'elsewhere'], { cwd: '/tmp', env: { ...process.env, NODE_OPTIONS: '--no-deprecation' } }));
  show(execSync(`"${node}" '${__filename}' child shell`));
  show(execFileSync(node, [__filename, 'again']));
  show(execFileSync(node, ['other.js', __filename]));
  show(spawnSync(node, [__filename, 'wrong'], { encoding: 'utf8' }).stderr.replaceAll(__filename, 'main.js'));
  const child = spawn(node, [__filename, 'child', 'spawn'], { stdio: 'inherit' });
  console.log(child.spawnargs.length);
  child.on('exit', (code) => fork(__filename, ['child', `fork ${code}`], { execArgv: ['--no-warnings'] }).on('exit', (last) => console.log(last)));
}
