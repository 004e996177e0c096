#!/usr/bin/env node
// Starts the program of the package for this platform. The program has this process's input, output and terminal, and gets
// its signals; this process ends as the program does.
'use strict';

const { spawn } = require('node:child_process');
const { randomBytes } = require('node:crypto');
const { dirname, join } = require('node:path');
const { isatty } = require('node:tty');

const { optionalDependencies: packages } = require('../package.json');

const platform = `${process.platform}-${process.arch}`;
const name = `watchdog-monitor-${platform}`;

function refuse(text) {
  console.error(`watchdog-monitor: ${text}`);
  process.exit(1);
}

function programOf(folder) {
  return join(folder, 'bin', 'watchdog-monitor');
}

function find() {
  const image = `docker run -p 127.0.0.1:3000:3000 -p 127.0.0.1:3001:3001 -v watchdog:/data -e WATCHDOG_TOKEN=${randomBytes(32).toString('hex')} watchdog-monitor`;
  if (process.platform !== 'linux') refuse(`the program runs on Linux only. On this system, run its container:\n  ${image}`);
  if (!(name in packages)) refuse(`the program is not made for ${platform}, only for ${Object.keys(packages).map((one) => one.replace('watchdog-monitor-', '')).join(' and ')}.`);
  try {
    return programOf(dirname(require.resolve(`${name}/package.json`)));
  } catch {
    return refuse(`the package ${name} with the program is missing, so install watchdog-monitor again without --omit=optional.`);
  }
}

// A terminal sends its own signals to the program as well, and a second Ctrl-C would mean something else.
const isAtTerminal = [0, 1, 2].some((one) => isatty(one));
const signals = ['SIGHUP', 'SIGTERM', 'SIGUSR1', 'SIGUSR2', 'SIGINT', 'SIGQUIT'];
const fromTerminal = ['SIGINT', 'SIGQUIT'];

const early = [];
let program = { kill: (signal) => early.push(signal) };
for (const signal of signals) {
  process.on(signal, () => { if (!isAtTerminal || !fromTerminal.includes(signal)) program.kill(signal); });
}
program = spawn(find(), process.argv.slice(2), { stdio: 'inherit' });
for (const signal of early) program.kill(signal);
program.on('error', (error) => refuse(`the program does not start: ${error.message}.`));
program.on('exit', (code, signal) => {
  if (signal === null) process.exit(code);
  for (const one of signals) process.removeAllListeners(one);
  process.kill(process.pid, signal);
});
