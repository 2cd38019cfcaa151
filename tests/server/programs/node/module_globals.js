// The global object, strictness and hoisting of a program.
var declared = 1;
implicit = 2;
console.log(typeof hoisted, globalThis.declared, globalThis.implicit, (function () { return this === globalThis; })());
function hoisted() {}
console.log(typeof later);
var later = 1;
console.log(Object.keys(globalThis).filter((name) => name !== 'implicit').join(' '));
