'use strict';
// Runs one file as `node FILE` would: `node run.js FILE`, with the channel at the descriptor that
// HEARTH_CHANNEL names. In addition it reports an uncaught error on the channel, and finds packages
// from the directory where the code runs, which is not that of its file.

const Module = require('node:module');
const path = require('node:path');
const { Channel, describe } = require('./hearth_show.js');

const channel = new Channel(Number(process.env.HEARTH_CHANNEL || 0));
delete process.env.HEARTH_CHANNEL;
const file = path.resolve(process.argv[2]);
process.argv.splice(1, 2, file);

process.on('uncaughtExceptionMonitor', (error) => {
  const told = describe(error, path.dirname(file));
  channel.send('error', JSON.stringify(told));
});

const here = process.cwd();
const pathsFrom = Module._nodeModulePaths;
Module._nodeModulePaths = (from) =>
  from === path.dirname(file) ? [...pathsFrom(here), ...pathsFrom(from)] : pathsFrom(from);

Module.runMain(file);
