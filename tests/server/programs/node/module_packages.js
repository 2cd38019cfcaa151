// A package below node_modules, with exports and a scope.
const fs = require('fs');
fs.mkdirSync('node_modules/@me/tool/lib', { recursive: true });
fs.writeFileSync('node_modules/@me/tool/package.json', '{"name": "@me/tool", "version": "1.2.3", "exports": {".": "./lib/m.js", "./x": "./lib/x.js"}}');
fs.writeFileSync('node_modules/@me/tool/lib/m.js', 'module.exports = "main";');
fs.writeFileSync('node_modules/@me/tool/lib/x.js', 'module.exports = "x";');
console.log(require('@me/tool'), require('@me/tool/x'));
import('@me/tool').then((m) => console.log(m.default));
