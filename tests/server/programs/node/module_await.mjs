// await inside expressions makes a module: arguments, templates, brackets, conditions.
const twice = async (x) => x * 2;
console.log(await Promise.all([1, 2].map(twice)), `${await twice(4)}`);
const { EOL } = (await import('node:os'));
const list = [await twice(5), { x: await twice(6) }];
if (await twice(0)) throw new Error('never');
for (const each of await Promise.all([twice(7)])) console.log(each, list, EOL.length, typeof require);
