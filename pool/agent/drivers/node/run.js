'use strict';
// Makes `node --require run.js FILE` run FILE as a file of the directory where it runs, although it lies elsewhere:
// packages, './x' and import('./x') are found there. Code that parses only as a module runs as one. An uncaught error is
// also told on the channel at the descriptor that HEARTH_CHANNEL names.

const fs = require('node:fs');
const Module = require('node:module');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const vm = require('node:vm');
const { isMainThread } = require('node:worker_threads');
const { Channel, describe } = require('./hearth_show.js');

const file = process.argv[1];
const here = path.join(process.cwd(), path.basename(file || ''));
const typescript = /\.ts\.js$/.test(file); // compiled before

function report() {
  const channel = new Channel(Number(process.env.HEARTH_CHANNEL || 0));
  delete process.env.HEARTH_CHANNEL;
  process.on('uncaughtExceptionMonitor', (error) => {
    hideFrames(error);
    channel.send('error', JSON.stringify(describe(error, path.dirname(file))));
  });
}

// Hooks of imports, and the function that loads TypeScript, are in the stacks of what fails in them.
function hideFrames(error) {
  const lines = typeof error?.stack === 'string' ? error.stack.split('\n') : [];
  const shown = lines.filter((line) => !/^\s+at /.test(line) || !line.includes(`${__dirname}/`));
  if (shown.length < lines.length) error.stack = shown.join('\n');
}

// For require(): relative names first in the directory where the code runs.
function resolveHere() {
  const pathsFrom = Module._nodeModulePaths;
  Module._nodeModulePaths = (from) =>
    from === path.dirname(file) ? [...pathsFrom(process.cwd()), ...pathsFrom(from)] : pathsFrom(from);
  const lookUp = Module._resolveLookupPaths;
  Module._resolveLookupPaths = (request, parent) => {
    const paths = lookUp(request, parent);
    const own = parent?.filename === file && /^\.\.?(\/|$)/.test(request);
    return own ? [path.dirname(here), ...paths] : paths;
  };
}

// For import(): the same. The hooks cost a thread, so only code with the word gets them.
function hookImports(asModule) {
  if (!Module.register) return; // before Node 18.19 they are looked up beside the file
  const data = { file: pathToFileURL(file).href, here: pathToFileURL(here).href, asModule, typescript };
  Module.register('./imports.mjs', pathToFileURL(__filename).href, { data });
}

function syntaxError(code) {
  try {
    new vm.Script(code);
  } catch (error) {
    if (error instanceof SyntaxError) return error.message;
    throw error;
  }
  return null;
}

// The parser's errors at a word that only a module can say, as in Node 22 (--experimental-detect-module).
const kModuleErrors = /^(Cannot use import statement outside a module|Unexpected token 'export'|Cannot use 'import\.meta' outside a module)/;

// Code that is no script, but parses where `await` is allowed. Errors cannot tell: those at an `await` have many texts.
function isModule(code) {
  const text = code.replace(/^#!.*/, '');
  const error = syntaxError(Module.wrap(text));
  if (error === null) return false;
  if (kModuleErrors.test(error)) return true;
  const inside = syntaxError(`(async () => {'use strict';${text}\n})`);
  return inside === null || kModuleErrors.test(inside);
}

function begin() {
  const code = fs.readFileSync(file, 'utf8');
  const asModule = file.endsWith('.mjs') || isModule(code);
  resolveHere();
  if (typescript) require('./typescript.js').extendRequire();
  if (asModule || /\bimport\b/.test(code)) hookImports(asModule);
  if (asModule) Module.runMain = runModule;
}

// As node ends for a module: with 13 if it waits for what never comes, but not where the code calls process.exit().
function runModule() {
  const unsettled = () => { process.exitCode ??= 13; };
  const idle = () => process.on('exit', unsettled);
  process.once('beforeExit', idle);
  import(pathToFileURL(file).href).finally(() => {
    process.off('beforeExit', idle);
    process.off('exit', unsettled);
  });
}

if (require.main === module) {
  process.stderr.write('hearth: the language table of this image starts run.js itself; it must say: node --require=/.hearth/node/run.js {file}\n');
  process.exit(125);
}
if (isMainThread && file) {
  process.execArgv.length = 0; // its own child processes and threads run as they would without this file
  report();
  begin();
  for (const own of [__filename, './hearth_show.js', './typescript.js']) delete require.cache[require.resolve(own)];
}
