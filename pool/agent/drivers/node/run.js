'use strict';
// Makes `node --require run.js FILE` run FILE as a file of the directory where it runs, although it lies elsewhere:
// packages, './x' and import('./x') are found there. Code that parses only as a module runs as one. An uncaught error is
// also told on the channel at the descriptor that HEARTH_CHANNEL names.

const fs = require('node:fs');
const Module = require('node:module');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const vm = require('node:vm');
const { getEnvironmentData, isMainThread, setEnvironmentData } = require('node:worker_threads');
const { Channel, describe } = require('./hearth_show.js');

const { file, here } = program();
const typescript = /\.ts\.js$/.test(file); // compiled before

// The file, and its place in the workspace. Threads and child processes of a run (followChildren) get them from it.
function program() {
  if (!isMainThread) return getEnvironmentData('hearth') ?? {};
  const told = process.env.HEARTH_RUN;
  if (!told) return { file: process.argv[1], here: path.join(process.cwd(), path.basename(process.argv[1] || '')) };
  const { options, ...run } = JSON.parse(told);
  delete process.env.HEARTH_RUN;
  if (options === undefined) delete process.env.NODE_OPTIONS;
  else process.env.NODE_OPTIONS = options;
  return run;
}

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
    from === path.dirname(file) ? [...pathsFrom(path.dirname(here)), ...pathsFrom(from)] : pathsFrom(from);
  const lookUp = Module._resolveLookupPaths;
  Module._resolveLookupPaths = (request, parent) => {
    const paths = lookUp(request, parent);
    const own = parent?.filename === file && /^\.\.?(\/|$)/.test(request);
    return own ? [path.dirname(here), ...paths] : paths;
  };
}

// The nearest package.json says what a .js file is, and what the package's own names are.
function packageHere() {
  const found = Module._nodeModulePaths(path.dirname(here)).map((each) => path.join(each, '../package.json')).find(fs.existsSync);
  try {
    return found ? JSON.parse(fs.readFileSync(found, 'utf8')) : {};
  } catch {
    return {};
  }
}

function resolveOwnNames({ name, imports, exports }) {
  if (!imports && !exports) return; // a frame of this function is in the stacks of what is not found
  const find = Module._resolveFilename;
  Module._resolveFilename = (request, parent, ...more) => {
    const own = parent?.filename === file && (request[0] === '#' || request === name || request.startsWith(`${name}/`));
    return find(request, own ? Object.create(parent, { filename: { value: here } }) : parent, ...more);
  };
}

// A child process finds the same if its arguments name the file: NODE_OPTIONS load this file there, which removes them.
function followChildren() {
  for (const spawner of spawners()) {
    const { spawn } = spawner;
    spawner.spawn = function (...parts) {
      return spawn.apply(this, followed(parts));
    };
  }
}

// One object, or, of Node 24.21, the parts of it: the program, its words, its directory, its environment, and more.
function followed([child, words, folder, pairs, ...more]) {
  const names = (args) => Array.isArray(args) && args.some((word) => String(word).includes(file));
  if (child?.args !== undefined) return [names(child.args) ? { ...child, envPairs: environment(child.envPairs) } : child];
  return [child, words, folder, names(words) ? environment(pairs) : pairs, ...more];
}

// Both ways to start a process; none in a Node that has taken these bindings away, as it says that it may.
function spawners() {
  try {
    return [process.binding('process_wrap').Process.prototype, process.binding('spawn_sync')];
  } catch {
    return [];
  }
}

function environment(pairs = []) {
  const options = pairs.find((each) => each.startsWith('NODE_OPTIONS='))?.slice(13);
  const others = pairs.filter((each) => !each.startsWith('NODE_OPTIONS='));
  return [...others, `NODE_OPTIONS=${options ?? ''} --require=${__filename}`, `HEARTH_RUN=${JSON.stringify({ file, here, options })}`];
}

// For import(): the same. The hooks cost a thread, so only code with the word gets them.
function hookImports(asModule) {
  if (!Module.register) return; // before Node 18.19 they are looked up beside the file
  const data = { file: pathToFileURL(file).href, here: pathToFileURL(here).href, asModule, typescript };
  const quiet = Object.getOwnPropertyDescriptor(process, 'noDeprecation');
  if (!quiet?.value) Object.defineProperty(process, 'noDeprecation', { value: true, configurable: true }); // Node 26 warns of register()
  Module.register('./imports.mjs', pathToFileURL(__filename).href, { data });
  if (quiet?.value) return; // also of --no-deprecation, which nobody can change
  delete process.noDeprecation;
  if (quiet) Object.defineProperty(process, 'noDeprecation', quiet);
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
  report();
  const code = fs.readFileSync(file, 'utf8');
  const own = packageHere();
  const asModule = file.endsWith('.mjs') || (own.type === 'module' && !typescript) || isModule(code);
  resolveHere();
  resolveOwnNames(own);
  followChildren();
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

// A thread tells its file where it asks for runMain. A function that calls runMain would be in the stacks of the code.
function beginInThread() {
  const property = Object.getOwnPropertyDescriptor(Module, 'runMain');
  const get = () => {
    Object.defineProperty(Module, 'runMain', property);
    if (process.argv[1] === file) begin();
    return Module.runMain;
  };
  Object.defineProperty(Module, 'runMain', { configurable: true, enumerable: true, get });
}

if (require.main === module) {
  process.stderr.write('hearth: the language table of this image starts run.js itself; it must say: node --require=/.hearth/node/run.js {file}\n');
  process.exit(125);
}
process.execArgv = process.execArgv.filter((word) => !word.endsWith(__filename)); // its child processes run as without this file
if (file && !isMainThread) {
  beginInThread();
} else if (file && file === process.argv[1]) {
  setEnvironmentData('hearth', { file, here });
  begin();
}
for (const own of [__filename, './hearth_show.js', './typescript.js']) delete require.cache[require.resolve(own)];
