// Classes, proxies, generators, symbols, destructuring, optional chaining, labels.
// Also as a cell of a context.
class A { static #count = 0; static { A.kind = 'block'; } #x = 1; has(o) { return #x in o; } get [Symbol.toStringTag]() { return 'Tagged'; } static next() { return ++A.#count; } }
const proxy = new Proxy({}, { get: (_, name) => `<${String(name)}>`, has: () => true });
function* fib(a = 0, b = 1) { for (;;) { const stop = yield a; if (stop) return 'stopped'; [a, b] = [b, a + b]; } }
const it = fib();
console.log(A.kind, new A().has(new A()), String(new A()), A.next() + A.next(), proxy.any, 'x' in proxy, [it.next().value, it.next().value, it.next(true)]);
const { a: { b = 5, ...rest } = {}, ...others } = { a: { c: 1 }, d: 2 };
console.log(b, rest, others, null?.x?.y, undefined ?? 'default', typeof undeclared);
outer: for (const i of [1, 2, 3]) for (const j of [1, 2]) { if (j === 2) continue outer; if (i === 3) break outer; console.log(i, j); }
new A().missing();
