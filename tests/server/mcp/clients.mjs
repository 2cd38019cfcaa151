// Runs the modules that are named, or all; each is what clients do in one respect, and its tests run as it is loaded.
import {failed} from './support.mjs';

const named = process.argv.slice(2);
for (const part of named.length ? named : ['matrix', 'work', 'notices', 'bridge', 'seeds', 'sessions']) {
    await import(`./${part}.mjs`);
}
process.exit(failed() ? 1 : 0);
