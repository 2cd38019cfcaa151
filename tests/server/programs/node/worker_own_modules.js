// Threads of the program's file find what it finds, and so do theirs; those of other files and texts are as ever.
const fs = require('fs');
const { execFileSync } = require('child_process');
const { Worker, isMainThread, parentPort, workerData, threadId } = require('worker_threads');

if (process.argv[2] === 'child') {
  console.log('child of a thread', require('./lib').v);
} else if (isMainThread) {
  fs.writeFileSync('lib.js', 'exports.v = 1;');
  fs.writeFileSync('esm.mjs', 'export const v = 2;');
  fs.mkdirSync('node_modules/tool', { recursive: true });
  fs.writeFileSync('node_modules/tool/index.js', 'module.exports = "tool";');
  fs.writeFileSync('other.js', 'require("worker_threads").parentPort.postMessage([require("./lib").v, require("tool"), process.execArgv]);');
  const start = (name, options) => new Promise((resolve) => {
    new Worker(name, options).on('message', (text) => { console.log(text); resolve(); }).on('error', (error) => { console.log(error.code ?? error.stack); resolve(); });
  });
  (async () => {
    await start(__filename, { workerData: 'inner' });
    await start(require('url').pathToFileURL(__filename), { argv: ['a'] });
    await start(__filename, { workerData: 'wrong' });
    await start('./other.js');
    fs.writeFileSync('wrong.js', 'null.x');
    await start('./wrong.js');
    await start(__filename, { workerData: 'import' });
    await start('require("worker_threads").parentPort.postMessage([require("./lib").v, process.execArgv])', { eval: true });
  })();
} else {
  if (workerData === 'wrong') require('./lib').none.x;
  if (workerData === 'import') import('./nowhere.mjs');
  const found = [require('./lib').v, require('tool'), require.main === module, process.argv.length, process.execArgv];
  import('./esm.mjs').then(({ v }) => {
    const done = (text) => parentPort.postMessage([...found, v, text, String(execFileSync(process.execPath, [__filename, 'child']))]);
    if (workerData === 'inner') new Worker(__filename).on('message', (inner) => done(`inner ${inner}`));
    else done('alone');
  });
}
