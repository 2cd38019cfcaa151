// Regular expressions: named groups, unicode properties, sticky, matchAll, replace by a function.
// Also as a cell of a context.
const text = '2024-01-05, 2023-12-31: 漢字 é';
console.log([...text.matchAll(/(?<y>\d{4})-(?<m>\d\d)/g)].map((m) => [m.index, m.groups.y]), text.match(/\p{Script=Han}+/u)[0]);
console.log(text.replace(/(\d+)-(\d+)/g, (all, a, b) => `${b}/${a}`), 'aBc'.replaceAll(/[a-z]/g, '$&$&'), 'a1b2'.split(/(\d)/), /(?<=\$)\d+/.exec('$42')[0]);
const sticky = /\d/y;
console.log(sticky.test('a1'), 'é'.normalize('NFD').length, '👩‍🚀'.length, [...'👩‍🚀'].length, 'abc'.at(-1), 'x'.padStart(3, 'ab'), 'ß'.toUpperCase());
new RegExp('(');
