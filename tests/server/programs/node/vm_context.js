// vm runs code in a context of its own; util has what it has.
const vm = require('vm');
const util = require('util');
const sandbox = vm.createContext({ x: 2, console });
vm.runInContext('x *= 21; globalThis.y = typeof require; console.log(x, y)', sandbox);
console.log(sandbox.x, util.format('%O', { a: 1 }), util.isDeepStrictEqual([1], [1]), util.types.isPromise(Promise.resolve()));
util.promisify(setTimeout)(1).then(() => console.log('promisified'));
vm.runInThisContext('throw new SyntaxError("from vm")', 'named.vm');
