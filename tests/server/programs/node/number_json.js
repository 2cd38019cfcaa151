// Numbers, BigInt and JSON.
// Also as a cell of a context.
console.log(0.1 + 0.2, 1e21, -0, 1 / 3, Number.MAX_SAFE_INTEGER + 2, 2n ** 100n, (25).toString(2), parseInt('08'), Number(''), (1.005).toFixed(2), 5 % -3);
console.log(JSON.stringify({ d: new Date(0), u: undefined, f() {}, n: NaN, nested: [undefined, () => {}], s: '\u2028\ud800' }, null, 1));
console.log(JSON.parse('[1,{"a":2}]', (k, v) => (typeof v === 'number' ? v * 2 : v)), BigInt.asIntN(8, 255n), Math.hypot(3, 4), Math.round(-2.5), [10, 9, 1].sort());
console.log(structuredClone({ m: new Map([[1, new Date(0)]]) }), Object.is(-0, 0), [1, 2, 3].includes(NaN), 0.1 * 3, 1_000);
JSON.stringify(1n);
