// Intervals, clearing, unref, and promises of timers.
const { setTimeout: sleep } = require('timers/promises');
let n = 0;
const timer = setInterval(() => {
  console.log('tick', ++n);
  if (n === 3) clearInterval(timer);
}, 3);
setTimeout(() => console.log('never'), 60000).unref();
(async () => console.log(await sleep(300, 'value')))();
