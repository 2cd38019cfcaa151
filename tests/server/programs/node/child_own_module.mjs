// A child process and a thread of a program that is a module.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Worker, isMainThread, parentPort } from 'node:worker_threads';

const own = fileURLToPath(import.meta.url);
if (isMainThread && process.argv.length === 2) {
  fs.writeFileSync('lib.mjs', 'export const v = 1;');
  process.stdout.write(execFileSync(process.execPath, [own, 'child']));
  new Worker(new URL(import.meta.url)).on('message', (text) => console.log('thread', text));
} else {
  const { v } = await import('./lib.mjs');
  parentPort ? parentPort.postMessage(v) : console.log('child', v, process.argv.length);
}
