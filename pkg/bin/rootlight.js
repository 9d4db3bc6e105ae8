#!/usr/bin/env node
// The program `rootlight` of the package: a development chain, a light client and offline checks in Node.js, on the modules that pages
// use. The native program of the same name has more commands and flags.
import { readFileSync } from 'node:fs';
import { COMMANDS } from './commands.js';
import { Usage, help, read, shown } from './flags.js';

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

/** Exit codes, as those of the native program. */
const FAILED = 1;
const WRONG_USAGE = 2;

async function main([name, ...rest]) {
  if (name === '--version' || name === '-V') return console.log(`rootlight ${version}`);
  // Without a command the program runs a development chain, as the native program does.
  const isFlag = name === undefined || name.startsWith('-');
  if (name === 'help' || name === '--help' || name === '-h') return console.log(help(COMMANDS, COMMANDS[rest[0]] && rest[0]));
  const [wanted, args] = isFlag ? ['dev', name === undefined ? [] : [name, ...rest]] : [name, rest];
  const command = Object.hasOwn(COMMANDS, wanted) ? COMMANDS[wanted] : undefined;
  if (!command) throw new Usage(`there is no command ${shown(wanted)} in the npm package: rootlight --help lists the commands`);
  const given = read(wanted, command, args);
  if (given.flags.help) return console.log(help(COMMANDS, wanted));
  const { run } = await command.load();
  process.exitCode = await run(given.flags, given.words, version);
}

main(process.argv.slice(2)).catch((error) => {
  console.error(`error: ${error?.message ?? error}`);
  process.exitCode = error instanceof Usage ? WRONG_USAGE : FAILED;
  // Ends the process although timers and connections of the failed command may remain.
  process.exit();
});
