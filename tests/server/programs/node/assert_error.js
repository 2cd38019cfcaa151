// The message of a failed assertion shows the difference.
const assert = require('assert');
assert.throws(() => { throw new TypeError('x'); }, TypeError);
assert.deepStrictEqual({ a: [1, 2, { b: 'x' }] }, { a: [1, 2, { b: 'y' }] });
