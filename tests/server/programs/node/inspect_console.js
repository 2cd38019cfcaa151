// console: error, table, group, count, assert, dir, trace of the program alone.
// Also as a cell of a context.
console.table([{ a: 1, b: 'x' }, { a: 22, c: true }]);
console.group('group');
console.info('inside\nof it');
console.groupEnd();
console.count();
console.count('named');
console.assert(1 > 2, 'asserted %d', 5);
console.dir({ a: { b: { c: {} } } }, { depth: 0 });
console.error('to stderr', [1]);
console.warn();
