// Hooks for the imports of one file (run.js): what it names is looked for in the directory where the code runs, and it is
// a module if run.js says so. With `typescript`, imports find TypeScript, too (typescript.js).

import { fileURLToPath } from 'node:url';
import ts from './typescript.js';

let file;
let here;
let asModule;
let typescript;

export function initialize(data) {
  ({ file, here, asModule, typescript } = data);
}

// The first of these names that is a module; the error is that of the first.
async function firstOf(names, context, next) {
  let error;
  for (const name of names) {
    try {
      return await next(name, context);
    } catch (e) {
      error ??= e;
      if (!['ERR_MODULE_NOT_FOUND', 'ERR_UNSUPPORTED_DIR_IMPORT'].includes(e.code)) break;
    }
  }
  throw error;
}

export async function resolve(specifier, context, next) {
  const { parentURL } = context;
  const names = [specifier];
  const ofTypescript = typescript && (parentURL === file || parentURL?.endsWith('.ts'));
  if (ofTypescript && /^\.\.?\//.test(specifier)) names.push(...ts.others(specifier));
  if (parentURL !== file) return firstOf(names, context, next);
  try {
    return await firstOf(names, { ...context, parentURL: here }, next);
  } catch (error) {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
    return next(specifier, context);
  }
}

export async function load(url, context, next) {
  if (typescript && url.endsWith('.ts')) {
    return { format: 'module', source: ts.compile(fileURLToPath(url), 'esm'), shortCircuit: true };
  }
  return next(url, asModule && url === file ? { ...context, format: 'module' } : context);
}
