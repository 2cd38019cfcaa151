// Workers of a cluster find the program's modules.
const cluster = require('cluster');
if (cluster.isPrimary) {
  require('fs').writeFileSync('lib.js', 'exports.v = 1;');
  cluster.fork();
  cluster.on('message', (worker, text) => console.log(text));
} else {
  process.send(`worker ${require('./lib').v} ${process.execArgv.length}`, () => process.exit());
}
