// import() of built-in modules and of files from a program of require.
const fs = require('fs');
fs.writeFileSync('lib.mjs', 'export const value = 7; export default () => import.meta.url.split("/").pop();');
(async () => {
  const { value, default: name } = await import('./lib.mjs');
  const { readFileSync } = await import('node:fs');
  console.log(value, name(), readFileSync('lib.mjs', 'utf8').length);
})();
