// A worker of the same file gets data and sends a message.
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');

if (isMainThread) {
  const worker = new Worker(__filename, { workerData: [1, 2, 3] });
  worker.on('message', (sum) => console.log('sum', sum));
  worker.on('exit', (code) => console.log('exit', code));
} else {
  parentPort.postMessage(workerData.reduce((a, b) => a + b));
}
