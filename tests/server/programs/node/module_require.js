// require of files of the directory where the program runs: JS, JSON, a folder, a cache, a circle.
const fs = require('fs');
fs.writeFileSync('a.js', 'exports.early = 1; exports.b = require("./b.js").seen; exports.late = 2;');
fs.writeFileSync('b.js', 'exports.seen = Object.keys(require("./a.js"));');
fs.writeFileSync('c.json', '{"é": [1]}');
fs.mkdirSync('folder', { recursive: true });
fs.writeFileSync('folder/index.js', 'module.exports = () => "folder";');
console.log(require('./a.js'), require('./c.json'), require('./folder')(), require('./a') === require('./a.js'));
try {
  require('./none.js');
} catch (error) {
  console.log(error.code);
}
