// TypeScript reads standard input with an import of modules.
import * as readline from 'readline';
import { basename } from 'path';
import type { Interface } from 'readline';

const rl: Interface = readline.createInterface({ input: process.stdin });
const counts = new Map<string, number>();
rl.on('line', (line: string): void => { for (const word of line.split(' ')) counts.set(word, (counts.get(word) ?? 0) + 1); });
rl.on('close', () => console.log([...counts.entries()], basename('/a/b.ts')));
