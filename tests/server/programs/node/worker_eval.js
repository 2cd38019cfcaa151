// A worker of a text, shared memory, and an error that comes to its owner.
const { Worker } = require('worker_threads');
const shared = new Int32Array(new SharedArrayBuffer(8));
const worker = new Worker('const { workerData } = require("worker_threads"); Atomics.add(workerData, 0, 5); throw new Error("in the worker");', { eval: true, workerData: shared });
worker.on('error', (error) => console.log(error.message, Atomics.load(shared, 0)));
worker.on('exit', (code) => console.log('exit', code));
