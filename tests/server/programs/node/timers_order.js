// The order of ticks, microtasks, immediates and timers.
setTimeout(() => console.log('6 timeout'), 1);
setTimeout(() => setImmediate(() => console.log('8 immediate')), 10);
setTimeout(() => console.log('7 later'), 5);
Promise.resolve().then(() => console.log('4 microtask')).then(() => console.log('5 second microtask'));
process.nextTick(() => console.log('3 tick'));
queueMicrotask(() => process.nextTick(() => console.log('5b tick of a microtask')));
console.log('1 sync');
(async () => { console.log('2 async function until await'); await null; })();
