// Files by promises: write, append, stat, rename, list, watch for errors.
const fs = require('fs/promises');
(async () => {
  await fs.mkdir('d/e', { recursive: true });
  await fs.writeFile('d/a.txt', 'héllo', { mode: 0o640 });
  await fs.appendFile('d/a.txt', '!');
  await fs.symlink('a.txt', 'd/link');
  await fs.copyFile('d/a.txt', 'd/e/b');
  const state = await fs.stat('d/a.txt');
  console.log(state.size, (state.mode & 0o777).toString(8), await fs.readlink('d/link'), (await fs.readdir('d', { withFileTypes: true })).map((e) => e.name + e.isDirectory()));
  await fs.rename('d/e/b', 'moved');
  await fs.readFile('none').catch((error) => console.log(error.code, error.message));
  await fs.rm('d/e', { recursive: true });
})();
