// A pipeline of streams: read, transform, compress, write, and an error inside one.
const { pipeline } = require('stream/promises');
const { Readable, Transform } = require('stream');
const zlib = require('zlib');
const fs = require('fs');

const upper = () => new Transform({ transform(chunk, _, done) { done(null, String(chunk).toUpperCase()); } });
(async () => {
  await pipeline(Readable.from(['a', 'b', 'é']), upper(), zlib.createGzip(), fs.createWriteStream('out.gz'));
  console.log(zlib.gunzipSync(fs.readFileSync('out.gz')).toString());
  const failing = new Transform({ transform(chunk, _, done) { done(new Error('cannot')); } });
  await pipeline(Readable.from(['x']), failing).catch((error) => console.log(error.message));
})();
