'use strict';
// The channel to the agent (PROTOCOL.md, Drivers), and the results that JavaScript shows on it.

const fs = require('node:fs');
const util = require('node:util');

const kMaxText = 64 << 10;
const kMaxResult = 4 << 20; // bytes of a message (PROTOCOL.md)

class Channel {
  constructor(fd) {
    this.fd = fd;
  }

  send(kind, text) {
    if (!(this.fd > 0)) return;
    const payload = Buffer.from(text);
    let data = Buffer.concat([Buffer.from(`${kind} ${payload.length}\n`), payload]);
    try {
      while (data.length > 0) data = data.subarray(fs.writeSync(this.fd, data));
    } catch {
      this.fd = -1; // nobody listens any more: the output still belongs to the program
    }
  }
}

function clip(text, limit) {
  if (text.length <= limit) return text;
  const half = limit >> 1;
  return `${text.slice(0, half)}\n... ${text.length - 2 * half} characters left out ...\n${text.slice(-half)}`;
}

// Sends the value of the last expression as a result; undefined is no result.
function sendValue(channel, value) {
  if (value === undefined) return;
  const mime = { 'text/plain': clip(util.inspect(value, { depth: 6 }), kMaxText) };
  if (typeof value === 'object' && value !== null) {
    try {
      const json = JSON.stringify(value);
      if (json !== undefined) mime['application/json'] = JSON.parse(json);
    } catch {
      // the value is no JSON: cycles, BigInt
    }
  }
  let message = JSON.stringify({ main: true, mime });
  const bytes = Buffer.byteLength(message);
  if (bytes > kMaxResult) {
    delete mime['application/json'];
    const reason = `the result has ${bytes} bytes, more than ${kMaxResult}`;
    message = JSON.stringify({ main: true, mime, leftOut: [{ type: 'application/json', reason }] });
  }
  channel.send('result', message);
}

// The lines of its stack that are code's: what called a driver is none, either.
function ownLines(error) {
  const lines = String(error.stack || error).split('\n');
  const driver = lines.findIndex((line) => /^\s+at (.*\()?\/\.hearth\/node\//.test(line));
  return lines.slice(0, driver < 0 ? undefined : driver).filter((line) => !/^\s+at (.*\()?node:/.test(line));
}

// Describes an uncaught error with only the lines of the code itself, whose file has its bare name.
function describe(error, folder = '') {
  if (!(error instanceof Error) && !util.types.isNativeError(error)) {
    const text = `Uncaught ${util.inspect(error)}`;
    return { name: typeof error, message: clip(String(util.inspect(error)), 2000), traceback: text };
  }
  const own = ownLines(error);
  return {
    name: clip(String(error.name), 200),
    message: clip(String(error.message), 2000),
    traceback: clip(own.join('\n').replaceAll(`${folder}/`, folder ? '' : '/'), 8000),
  };
}

module.exports = { Channel, clip, sendValue, describe, ownLines };
