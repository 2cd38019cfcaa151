'use strict';
// A Node that stays: runs one piece of code after another in one global scope. Its channel is descriptor 3 (PROTOCOL.md,
// Drivers). A piece is evaluated as the consoles of browsers do it (replMode of V8's inspector): `await` may stand at the top,
// and names may be declared again with the same keyword.

const fs = require('node:fs');
const { Session } = require('node:inspector');
const module_ = require('node:module');
const path = require('node:path');
const util = require('node:util');
const vm = require('node:vm');
const { Channel, sendValue, clip, describe, ownLines } = require('./hearth_show.js');
const { parses, withoutImports } = require('./cell_imports.js');

const channel = new Channel(3);
const session = new Session();
const own = {}; // what code of the inspector shares with this file; hidden in the global scope
let ownId; // its name for the inspector
const interruptible = new vm.Script('__hearth.work()', { filename: __filename });
let stop = null; // ends the await of the current code

Object.defineProperty(globalThis, '__hearth', { value: own });
session.connect();
session.post('Runtime.evaluate', { expression: '__hearth' }, (_, answer) => { ownId = answer.result.objectId; });

process.on('SIGINT', () => {
  if (stop) stop(Object.assign(new Error('the execution was interrupted'), { name: 'Interrupted' }));
});
process.on('uncaughtException', outside);
process.on('unhandledRejection', outside);
process.on('exit', (status) => {
  if (Number(status) !== 0) fs.writeSync(2, `hearth: the process of this context ended with status ${status}, and the context with it\n`);
});

// An error of a timer between two pieces belongs to none of them, but is told.
function outside(error) {
  if (stop) stop(error);
  else fs.writeSync(2, `${describe(error).traceback}\n`);
}

// Parses work: NUL-terminated texts, the first of which is the length of all.
function* parser() {
  let data = Buffer.alloc(0);
  for (;;) {
    const head = data.indexOf(0);
    const total = head < 0 ? 0 : Number(data.toString('latin1', 0, head));
    if (total > 0 && data.length >= total) {
      const texts = data.toString('utf8', 0, total).split('\0');
      const entries = 6 + Number(texts[5]);
      data = Buffer.concat([
        data.subarray(total),
        yield { kind: texts[1], cwd: texts[2], env: texts.slice(6, entries), code: texts[entries] },
      ]);
    } else {
      data = Buffer.concat([data, yield null]);
    }
  }
}

function begin(work) {
  for (const name of Object.keys(process.env)) delete process.env[name];
  for (const entry of work.env) {
    const at = entry.indexOf('=');
    process.env[entry.slice(0, at)] = entry.slice(at + 1);
  }
  process.chdir(work.cwd);
  const require_ = module_.createRequire(`${work.cwd}/`);
  Object.assign(globalThis, { require: require_, module: { exports: {} }, exports: {} });
  // A module of the working directory, so that what it imports is found from there.
  const importer = new module_(path.join(work.cwd, 'cell'));
  importer._compile('module.exports = (name, options) => import(name, options)', path.join(work.cwd, 'cell'));
  own.import = importer.exports;
}

// The value behind an answer of the inspector.
function valueOf({ objectId, unserializableValue, value }) {
  const argument = objectId ? { objectId } : unserializableValue ? { unserializableValue } : { value };
  session.post('Runtime.callFunctionOn', {
    objectId: ownId, functionDeclaration: 'function (value) { this.value = value; }', arguments: [argument],
  });
  const found = own.value;
  delete own.value;
  return found;
}

// Points at the place, as node does on its standard error.
function syntaxError(error, { lineNumber, columnNumber }, code, name) {
  const line = code.split('\n')[lineNumber] ?? '';
  error.stack = `${name}:${lineNumber + 1}\n${line}\n${' '.repeat(columnNumber)}^\n\n${error.name}: ${error.message}`;
  return error;
}

// The code itself parses, so a name in it is one of an earlier piece.
function isConflict({ message }, script) {
  return /^Identifier '.*' has already been declared$/.test(message) && parses(script);
}

function conflict({ message }) {
  const advice = 'assign to it, or use the same keyword (import counts as const, function as var, class as let)';
  return new SyntaxError(`${message} by an earlier cell, with another keyword: ${advice}`);
}

// As in Node's REPL: what begins with a brace and can be an object is one, not a block.
function withObject(code) {
  const object = `(${code}\n)`;
  return /^\s*\{/.test(code) && !/;\s*$/.test(code) && parses(object) ? object : code;
}

// Gives the piece's value or error to one of the two; an interrupt of a loop is thrown.
function evaluate(code, name, resolve, reject) {
  const script = withoutImports(withObject(code), '__hearth.import');
  const parameters = {
    expression: `${script}\n//# sourceURL=${name}`,
    replMode: true, awaitPromise: true, objectGroup: 'cell',
  };
  const onAnswer = (error, answer) => {
    if (error) return reject(error);
    const { exceptionDetails: thrown, result } = answer;
    const value = valueOf(thrown ? thrown.exception : result);
    session.post('Runtime.releaseObjectGroup', { objectGroup: 'cell' });
    if (!thrown) return resolve(value);
    if (!refusal || !(value instanceof SyntaxError)) return reject(value);
    return reject(isConflict(value, script) ? conflict(value) : syntaxError(value, thrown, code, name));
  };
  let refusal = true; // V8 answers before post() returns if it refuses to run the code
  own.work = () => {
    session.post('Runtime.evaluate', parameters, onAnswer);
    refusal = false;
  };
  interruptible.runInThisContext({ breakOnSigint: true });
}

// As node tells of an uncaught error: with its causes and properties. Null of what has only a text, or is not to be read.
function withCauses(error) {
  try {
    const seen = new Set();
    hideDriver(error, seen);
    const text = seen.size > 0 ? util.inspect(error) : '[';
    return text.startsWith('[') ? null : text;
  } catch {
    return null;
  }
}

function hideDriver(error, seen) {
  if (!util.types.isNativeError(error) || seen.has(error)) return;
  seen.add(error);
  const stack = ownLines(error).join('\n');
  if (stack !== error.stack) Object.defineProperty(error, 'stack', { value: stack, configurable: true, writable: true });
  for (const each of [error.cause, ...(Array.isArray(error.errors) ? error.errors : [])]) hideDriver(each, seen);
}

async function run(code, name) {
  const awake = setInterval(() => {}, 1 << 30); // a promise that nothing will settle would end the process
  try {
    let settle;
    const ended = new Promise((resolve, reject) => { settle = { resolve, reject }; });
    stop = settle.reject;
    evaluate(code, name, settle.resolve, settle.reject);
    const value = await ended;
    stop = null;
    sendValue(channel, value);
    return 0;
  } catch (error) {
    stop = null;
    const told = describe(error);
    const whole = withCauses(error) ?? told.traceback;
    fs.writeSync(2, `${whole}\n`);
    channel.send('error', JSON.stringify({ ...told, traceback: clip(whole, 8000) }));
    return 1;
  } finally {
    clearInterval(awake);
  }
}

async function serve() {
  const cut = parser();
  cut.next();
  const chunk = Buffer.alloc(65536);
  const read = util.promisify(fs.read);
  for (let count = 0; ; ) {
    const { bytesRead } = await read(3, chunk, 0, chunk.length, null);
    if (bytesRead === 0) process.exit(0);
    let work = cut.next(Buffer.from(chunk.subarray(0, bytesRead))).value;
    for (; work; work = cut.next(Buffer.alloc(0)).value) {
      channel.send('begun', '');
      if (count === 0) begin(work);
      const before = process.cpuUsage();
      const status = await run(work.code, `cell-${++count}`);
      const used = process.cpuUsage(before);
      const peak = process.resourceUsage().maxRSS;
      channel.send('done', `${status} ${used.user + used.system} ${peak}`);
    }
  }
}

serve();
