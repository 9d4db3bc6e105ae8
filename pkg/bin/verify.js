// `rootlight verify`: checks a file offline, and says what it proves.
import { INVALID_REQUEST } from '../message.js';
import * as verify from '../verify.js';
import { COMMANDS } from './commands.js';
import { Usage, contents, shown, wrongFlag } from './flags.js';

/** The kinds of documents. */
const SUBJECTS = ['header', 'receipt', 'account'];

/** Width of the column with the kind of each line in a report, in characters. */
const WIDTH = 12;

/** The bytes of a file; the error names the file. */
function bytesOf(file) {
  try {
    return contents(file);
  } catch ({ message }) {
    throw new Error(`${file}: ${message}`);
  }
}

/** The document in a file: a JSON value, or the RLP of a header in hexadecimal. */
function read(file) {
  const text = bytesOf(file).toString().trim();
  try {
    return JSON.parse(text);
  } catch {
    // An RLP in hexadecimal.
    return text;
  }
}

/** The subject of a document, by its members. */
function subjectOf(document) {
  const inner = document?.result ?? document;
  const has = (name) => inner !== null && typeof inner === 'object' && name in inner;
  if (has('receipt') || has('rawReceipt')) return 'receipt';
  return has('accountProof') || has('proof') ? 'account' : 'header';
}

/** A line of the report, with the kind of check below it if it has one. */
const line = (kind, text, by) => `  ${kind.padEnd(WIDTH)}${text}${by ? `\n  ${' '.repeat(WIDTH)}by ${by}` : ''}`;

/** The report as lines. */
function words(subject, network, { checks, facts, notProven }, failed) {
  return [
    `${subject} on ${network}`,
    ...checks.map(({ shown, rule }) => line('proven', shown, rule)),
    ...Object.entries(facts ?? {}).map(([name, value]) => line('fact', `${name} ${value}`)),
    ...(failed ? [line('failed', failed)] : (notProven ?? []).map((text) => line('not proven', text))),
    failed ? 'not verified' : 'verified',
  ].join('\n');
}

/** Runs the command; returns the exit code. */
export async function run(flags, given) {
  // The subject before the file may be missing.
  const [file, named, ...more] = [...given].reverse();
  if (file === undefined || more.length > 0) throw new Usage('verify: give a file, or - for standard input: rootlight verify --help');
  if (named === 'block') throw new Usage('verify: only the native program checks whole blocks; their headers are checked by: rootlight verify header FILE');
  if (named !== undefined && !SUBJECTS.includes(named)) throw new Usage(`verify: ${shown(named)} is none of ${SUBJECTS.join(', ')}`);
  const document = read(file);
  const [subject, network] = [named ?? subjectOf(document), flags.network ?? 'mainnet'];
  try {
    const report = await verify[subject](document, { network });
    console.log(flags.json ? JSON.stringify({ verified: true, ...report }, null, 2) : words(subject, network, report));
    return 0;
  } catch (error) {
    if (!(error instanceof verify.VerificationError)) throw error.code === INVALID_REQUEST ? wrongFlag(error, COMMANDS.verify) : error;
    const { passed: checks, message, rule, what } = error;
    console.log(flags.json ? JSON.stringify({ verified: false, checks, failed: { rule, what, message } }, null, 2) : words(subject, network, { checks }, message));
    return 1;
  }
}
