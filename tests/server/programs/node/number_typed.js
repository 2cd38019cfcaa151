// Typed arrays, views, and their overflow.
// Also as a cell of a context.
const buffer = new ArrayBuffer(8);
const view = new DataView(buffer);
view.setFloat32(0, 1.5);
view.setInt16(4, -2, true);
console.log(new Uint8Array(buffer), new Uint8ClampedArray([300, -5, 1.6]), new Int8Array([200]), Float32Array.of(0.1)[0], new BigInt64Array([2n ** 63n]));
console.log([3, 1, 2].toString(), Array.from('aé👍'), [1, [2, [3, [4]]]].flat(Infinity), Object.entries({ b: 1, a: 2, 1: 3 }), [..."ab"].entries().next());
