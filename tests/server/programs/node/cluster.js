// cluster starts workers of the program's file.
const cluster = require('cluster');
if (cluster.isPrimary) {
  const texts = [];
  let ended = 0;
  for (let i = 0; i < 2; i++) cluster.fork({ PART: i });
  cluster.on('message', (worker, text) => texts.push(text));
  cluster.on('exit', (worker, code) => { if (++ended === 2) console.log(texts.sort(), code); });
} else {
  process.send(`worker ${process.env.PART}`, () => process.exit(5));
}
