import fs from 'fs';

process.on('exit', (code) => console.log(code, process.exitCode, typeof fs));
await null;
process.exit();
