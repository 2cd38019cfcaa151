'use strict';
// A Node that stays: runs one piece of code after another in one global scope. Its channel is
// descriptor 3 (PROTOCOL.md, Drivers).

const fs = require('node:fs');
const module_ = require('node:module');
const util = require('node:util');
const vm = require('node:vm');
const { Channel, sendValue, describe } = require('./hearth_show.js');

const channel = new Channel(3);
let stop = null; // ends the await of the current code

process.on('SIGINT', () => {
  if (stop) stop(Object.assign(new Error('the execution was interrupted'), { name: 'Interrupted' }));
});
process.on('uncaughtException', (error) => {
  if (stop) stop(error);
});
process.on('unhandledRejection', (error) => {
  if (stop) stop(error);
});

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
}

// Code with await at its top level runs as the body of an async function, which returns its value.
function evaluate(code, name) {
  const options = { filename: name, displayErrors: true };
  try {
    return new vm.Script(code, options).runInThisContext({ breakOnSigint: true });
  } catch (error) {
    if (!(error instanceof SyntaxError) || !/\bawait\b/.test(code)) throw error;
    try {
      return new vm.Script(`(async () => (${code}\n))()`, options).runInThisContext();
    } catch {
      return new vm.Script(`(async () => {${code}\n})()`, options).runInThisContext();
    }
  }
}

async function run(code, name) {
  try {
    const value = await Promise.race([
      new Promise((_, reject) => { stop = reject; }),
      (async () => evaluate(code, name))(),
    ]);
    stop = null;
    sendValue(channel, value);
    return 0;
  } catch (error) {
    stop = null;
    const told = describe(error);
    fs.writeSync(2, `${told.traceback}\n`);
    channel.send('error', JSON.stringify(told));
    return 1;
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
      const status = await run(work.code, `cell ${++count}`);
      const used = process.cpuUsage(before);
      const peak = process.resourceUsage().maxRSS;
      channel.send('done', `${status} ${used.user + used.system} ${peak}`);
    }
  }
}

serve();
