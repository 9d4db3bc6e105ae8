// Compiles Token.sol into the folder named on the command line.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import solc from 'solc';

const [folder] = process.argv.slice(2);
const source = readFileSync(new URL('Token.sol', import.meta.url), 'utf8');
const input = {
  language: 'Solidity',
  sources: { 'Token.sol': { content: source } },
  // The newest rules that Rootstock has all opcodes of.
  settings: { evmVersion: 'shanghai', outputSelection: { '*': { Token: ['abi', 'evm.bytecode.object'] } } },
};
const output = JSON.parse(solc.compile(JSON.stringify(input)));
const errors = (output.errors ?? []).filter((e) => e.severity === 'error');
if (errors.length > 0) throw new Error(errors.map((e) => e.formattedMessage).join('\n'));
const { abi, evm } = output.contracts['Token.sol'].Token;
mkdirSync(folder, { recursive: true });
writeFileSync(join(folder, 'Token.json'), JSON.stringify({ abi, bytecode: `0x${evm.bytecode.object}` }));
