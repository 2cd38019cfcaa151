// Events: order, once, errors without a listener, AbortController, EventTarget.
const { EventEmitter, once } = require('events');
const emitter = new EventEmitter();
emitter.on('x', (v) => console.log('first', v));
emitter.prependListener('x', () => console.log('before'));
emitter.once('x', () => console.log('once'));
console.log(emitter.emit('x', 1), emitter.emit('x', 2), emitter.emit('none'));
const controller = new AbortController();
controller.signal.addEventListener('abort', () => console.log('aborted', controller.signal.reason.name));
controller.abort();
once(emitter, 'y').then(([v]) => { console.log('y', v); emitter.emit('error', new Error('nobody listens')); });
emitter.emit('y', 5);
