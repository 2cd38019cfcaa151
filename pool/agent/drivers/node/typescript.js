'use strict';
// Lets TypeScript name other TypeScript of the workspace: './x.ts', './x', and './x.js' where only x.ts exists. As for the
// program itself, esbuild removes the types without checking them.

const { spawnSync } = require('node:child_process');
const Module = require('node:module');

const kMost = 64 << 20;

/** The JavaScript of a file, as 'cjs' or 'esm'. Throws esbuild's message as a SyntaxError. */
function compile(file, format) {
  const words = [file, `--format=${format}`, '--platform=node', '--log-level=warning', '--color=false'];
  const { error, status, stdout, stderr } = spawnSync('esbuild', words, { encoding: 'utf8', maxBuffer: kMost });
  if (error) throw error;
  if (status !== 0) throw new SyntaxError(stderr.trim());
  return stdout;
}

/** Other names under which TypeScript may find what it names so. */
function others(name) {
  return name.endsWith('.js') ? [name.replace(/js$/, 'ts')] : [`${name}.ts`, `${name}.js`];
}

// Node shows the line that threw an uncaught error, which must be a line of the program.
function scriptOf(file) {
  try {
    return compile(file, 'cjs');
  } catch (error) {
    return `throw new ${error.name}(${JSON.stringify(error.message)})`;
  }
}

// An error of a module that is not found arises outside these functions, so its stack does not show them.
function extendRequire() {
  Module._extensions['.ts'] = (module, file) => module._compile(scriptOf(file), file);
  const find = Module._findPath;
  Module._findPath = (name, ...more) => find(name, ...more) || (name.endsWith('.js') && find(others(name)[0], ...more));
}

module.exports = { compile, others, extendRequire };
