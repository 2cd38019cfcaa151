// console.log of everything: depth, classes, maps, symbols, getters, circles.
// Also as a cell of a context.
class Point { #hidden = 1; constructor() { this.x = 1; } get y() { return 2; } static z = 3; }
const circle = { name: 'c', list: [] };
circle.list.push(circle);
console.log(new Point(), Point, circle, new Map([['a', { b: new Set([1]) }]]), [1, , 3], [undefined, null, NaN, -0]);
console.log({ a: { b: { c: { d: 1 } } }, [Symbol('s')]: 1n, f() {}, get g() { return 1; }, 'odd key': new Date(0) }, /x/gi, [function named() {}, () => {}]);
console.log('%s is %d years and %i, %j %o %%', 'Bob', 42.5, 42.9, { a: 1 }, [1], 'extra', Buffer.from('hi'), new Uint8Array(3), new Error('e').message);
console.log(Array.from({ length: 120 }, (_, i) => i), 'x'.repeat(50), ['a'.repeat(80), 'b']);
