// A module: top-level await, import, no require, strict mode.
import { readFileSync } from 'node:fs';
import path, { basename } from 'node:path';

const { setTimeout: sleep } = await import('node:timers/promises');
await sleep(5);
console.log(typeof require, typeof module, this, path.basename === basename, readFileSync(new URL(import.meta.url)).length > 100);
console.log(import.meta.url.startsWith('file:///'), basename(import.meta.url).split('.')[0], process.argv.length);
