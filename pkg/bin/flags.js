// Reads the flags of a command, from the command line and from the environment, and prints help.
import { closeSync, openSync, readSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { DISCONNECTED } from '../life.js';

/** The error of a wrong command line. */
export class Usage extends Error {}

/** Names the flag in an error of the module about an option, such as `blockTime`. An error about a node that does not answer is not one of usage. */
export function wrongFlag({ message, code }, command) {
  const [, option, reason] = /^(?:options: )?(\w+): (.*)$/s.exec(message) ?? [];
  const flag = option?.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  const words = flag !== undefined && Object.hasOwn(command.flags, flag) ? `--${flag}: ${reason}` : message;
  return code === DISCONNECTED ? new Error(words) : new Usage(words);
}

/** A word of the command line as an error may repeat it: an address may have a password or a key. */
export const shown = (text) => (/:\/\/|@/.test(text) ? 'an address' : `'${text.slice(0, 40)}'`);

/** Why a file or folder cannot be used; undefined for other errors. */
export const fileReason = ({ code }) =>
  ({
    ENOENT: 'there is no such file: check the path',
    EISDIR: 'this is a folder: give the path of a file',
    ENOTDIR: 'a file is in the place of a folder: give another path',
    EEXIST: 'a file is in the place of a folder: give another path',
    EACCES: 'this user has no right to it: change its owner or mode, or the path',
    EPERM: 'this user has no right to it: change its owner or mode, or the path',
    EROFS: 'the file system is read-only: give another path',
    ENOSPC: 'no room is left: free some, or give another path',
  })[code];

/** Longest file that is read, in bytes. */
const MAX_FILE_BYTES = 64 * 2 ** 20;

/** Most bytes that one call reads of a file. */
const PIECE_BYTES = 2 ** 16;

/** Reads an open file to its end, but not more than a byte beyond the limit: devices and pipes may have no end. */
function readOpen(descriptor) {
  const pieces = [];
  let size = 0;
  for (;;) {
    const piece = Buffer.alloc(Math.min(PIECE_BYTES, MAX_FILE_BYTES + 1 - size));
    const count = readSync(descriptor, piece);
    if (count === 0) return Buffer.concat(pieces);
    size += count;
    if (size > MAX_FILE_BYTES) throw new Error(`longer than ${MAX_FILE_BYTES} bytes`);
    pieces.push(piece.subarray(0, count));
  }
}

/** The bytes of a file, or of standard input for `-`. The error has only the reason, without the file's name. */
export function contents(file) {
  let opened;
  try {
    opened = file === '-' ? undefined : openSync(file);
    return readOpen(opened ?? 0);
  } catch (error) {
    throw new Error(fileReason(error) ?? error.message);
  } finally {
    if (opened !== undefined) closeSync(opened);
  }
}

/** Checks the form of a node's address. The error does not repeat it, because it may contain a key. */
export function address(text, name) {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  // The part before the first colon of HOST:PORT is read as a scheme.
  if (!url || (!text.includes('://') && !/^(?:https?|wss?):/.test(text))) throw new Usage(`${name} is not a URL: begin with http://, https://, ws:// or wss://`);
  if (!/^(?:https?|wss?):$/.test(url.protocol)) throw new Usage(`${name} is neither http, https, ws nor wss`);
  return url.href;
}

/** The environment variable of a flag. */
const variable = (name) => `ROOTLIGHT_${name.toUpperCase().replaceAll('-', '_')}`;

/** The error for a flag that the command does not have. It does not repeat a value, which may be a secret. */
function unknown(command, flags, name) {
  const word = name.replace(/^-+/, '').split('=')[0].slice(0, 40);
  // Flags that contain the word.
  const near = word === '' ? [] : Object.keys(flags).filter((known) => known.includes(word));
  const hint = near.length > 0 ? `; there is ${near.map((known) => `--${known}`).join(' and ')}` : '';
  return new Usage(`${command}: unknown flag --${word}${hint}: rootlight ${command} --help lists the flags`);
}

/** A flag's value, converted to a number if its kind is `number`. */
function converted(name, { kind }, text) {
  if (kind !== 'number') return text;
  if (!/^\d{1,15}$/.test(text)) throw new Usage(`--${name}: ${shown(text)} is not a whole number`);
  return Number(text);
}

/**
 * Reads the arguments of a command, and for flags that are not among them the environment.
 * @param {string} name
 * @param {{flags: object, words?: string}} command
 * @param {string[]} args
 * @returns {{flags: Record<string, any>, words: string[]}}
 */
export function read(name, { flags, words }, args) {
  const type = (flag) => (flag.value ? 'string' : 'boolean');
  const known = Object.entries({ ...flags, help: { short: 'h' } });
  const options = Object.fromEntries(known.map(([flag, of]) => [flag, { type: type(of), multiple: of.many ?? false, ...(of.short && { short: of.short }) }]));
  // Not strict, and checked below instead: the parser's own error would repeat the whole argument, which may be a secret.
  const { tokens } = parseArgs({ args, options, strict: false, allowPositionals: true, tokens: true });
  const given = { flags: {}, words: [] };
  for (const token of tokens) {
    if (token.kind === 'positional') given.words.push(token.value);
    if (token.kind !== 'option') continue;
    const flag = options[token.name] && { ...flags[token.name] };
    if (!flag) throw unknown(name, flags, token.rawName);
    if (flag.value && (token.value === undefined || (!token.inlineValue && token.value.startsWith('--')))) throw new Usage(`--${token.name} needs a value: ${flag.value}`);
    if (!flag.value && token.value !== undefined) throw new Usage(`--${token.name} takes no value`);
    const value = flag.value ? converted(token.name, flag, token.value) : true;
    if (flag.many) (given.flags[token.name] ??= []).push(value);
    else given.flags[token.name] = value;
  }
  if (!words && given.words.length > 0) throw new Usage(`${name}: ${shown(given.words[0])} is not a flag: rootlight ${name} --help lists them`);
  for (const [flag, of] of Object.entries(flags)) {
    const text = process.env[variable(flag)];
    if (text === undefined || flag in given.flags) continue;
    const value = of.value ? converted(flag, of, text) : text === 'true';
    given.flags[flag] = of.many ? [value] : value;
  }
  return given;
}

/** The help text of a command, or of the program. */
export function help(commands, name) {
  if (!name) {
    const list = Object.entries(commands).map(([command, { text }]) => `  ${command.padEnd(8)} ${text}`);
    return [
      'Rootstock development chain and light client in Node.js', '',
      'Usage: rootlight [COMMAND] [FLAGS]', '', 'Commands:', ...list, '',
      'rootlight COMMAND --help lists the flags of a command. Each can also be given as environment variable ROOTLIGHT_<FLAG>.',
      'Exit codes: 0 ok, 1 failed or not verified, 2 wrong usage.',
    ].join('\n');
  }
  const { text, flags, words } = commands[name];
  const list = Object.entries(flags).flatMap(([flag, of]) => [`  --${flag}${of.value ? ` <${of.value}>` : ''}`, `      ${of.text}`]);
  return [text, '', `Usage: rootlight ${name} [FLAGS]${words ? ` ${words}` : ''}`, '', 'Flags:', ...list, '  -h, --help', '      Print this'].join('\n');
}
