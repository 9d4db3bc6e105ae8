// Signed transactions of a token, with the same bytes for every node.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const { AbiCoder, Interface, Wallet, getCreateAddress, id, keccak256, toUtf8Bytes } = createRequire(
  new URL('../../tests/clients/', import.meta.url),
)('ethers');
const token = JSON.parse(readFileSync(process.env.ROOTLIGHT_TOKEN, 'utf8'));

export const CHAIN_ID = 33;
/** Accounts that the reference node's regtest funds, with keys from these seeds. */
export const wallets = ['cow', ...Array.from({ length: 9 }, (_, i) => `cow${i + 1}`)].map(
  (seed) => new Wallet(keccak256(toUtf8Bytes(seed))),
);
export const TOKEN = getCreateAddress({ from: wallets[0].address, nonce: 0 });
const abi = new Interface(token.abi);
const nonces = wallets.map(() => 0);

function signed(index, fields) {
  const nonce = nonces[index]++;
  const rest = { chainId: CHAIN_ID, type: 0, gasPrice: 1_000_000_000, value: 0, nonce };
  return wallets[index].signTransaction({ ...rest, ...fields });
}

/** Transactions that deploy the token and give every account some of it, in the order of mining. */
export async function setup() {
  const args = AbiCoder.defaultAbiCoder().encode(['string', 'uint256'], ['Bench', 10n ** 24n]);
  const all = [await signed(0, { data: token.bytecode + args.slice(2), gasLimit: 2_000_000 })];
  for (const { address } of wallets.slice(1)) all.push(await transfer(0, address, 10n ** 20n));
  return all;
}

export function transfer(from, to, value) {
  return signed(from, { ...transferCall(to, value), gasLimit: 100_000 });
}

/** The message of a transfer. */
export function transferCall(to, value) {
  return { to: TOKEN, data: abi.encodeFunctionData('transfer', [to, value]) };
}

/** A transaction to a contract that needs no input. */
export function send(from, to, gasLimit) {
  return signed(from, { to, gasLimit });
}

/** Address number `index` of unused accounts. */
export function stranger(index) {
  return `0x${id(`stranger ${index}`).slice(26)}`;
}

export function balanceOf(address) {
  return { to: TOKEN, data: abi.encodeFunctionData('balanceOf', [address]) };
}
