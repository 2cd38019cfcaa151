// A program finds itself: its file, its module, its arguments.
const path = require('path');
console.log(require.main === module, path.basename(__filename), path.basename(process.argv[1]), process.argv.length);
console.log(__filename === process.argv[1], __dirname === path.dirname(__filename), require('fs').existsSync(__filename));
console.log(typeof exports, this === module.exports, process.execArgv, Object.keys(require.cache).length);
