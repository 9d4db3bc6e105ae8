// The explorer's form for accounts, and the paths in the state trie that prove accounts and storage cells.
import type { Block, Session } from '../chain/session.ts';
import { fromHex, grouped, quantity, rbtc, toAddress, toBig, word256 } from '../bytes.ts';
import { nativeName } from '../contracts/natives.ts';
import { el, field, form } from '../dom.ts';
import { decodeList } from '../proof/rlp.ts';
import { accountKey, follow, slotKey, type TriePath, unwrapped } from '../proof/trie.ts';
import { answerView, claimInWords, claimOf, provenInWords, resultDisplay } from './answer.ts';
import type { Trail } from './trail.ts';

/** The result of `eth_getProof`. */
export interface AccountProof {
  readonly balance: string;
  readonly nonce: string;
  readonly accountProof: readonly string[];
  readonly storageProof: readonly { readonly key: string; readonly value: string; readonly proof: readonly string[] }[];
}

/** The bytes of the value at the end of a path. */
export function valueOf(path: TriePath): Uint8Array {
  const last = path.nodes.at(-1);
  return last?.value ? last.bytes.subarray(last.value.start, last.value.end) : new Uint8Array();
}

/** The path to an account, compared with the values that the client proved. */
export function accountTrail(block: Block, address: string, proof: AccountProof, title: string): Trail {
  const path = follow(block.stateRoot, accountKey(address), unwrapped(proof.accountProof));
  const [nonce, balance] = path.found ? decodeList(valueOf(path)).map(toBig) : [0n, 0n];
  const holds = (balance ?? 0n) === BigInt(proof.balance) && (nonce ?? 0n) === BigInt(proof.nonce);
  return { title, block, root: 'stateRoot', path, holds, value: `nonce ${nonce ?? 0n}, balance ${rbtc(balance ?? 0n)}` };
}

/** The path to a storage cell. */
export function cellTrail(block: Block, address: string, cell: AccountProof['storageProof'][number], title: string): Trail {
  const path = follow(block.stateRoot, slotKey(address, cell.key), unwrapped(cell.proof));
  const value = toBig(valueOf(path));
  return { title, block, root: 'stateRoot', path, holds: value === BigInt(cell.value), value: `0x${value.toString(16)}, or ${grouped(value)}` };
}

/** The block at the verified head. All parts of an answer are requested at this block, so that they fit together. */
export async function pinnedBlock(session: Session): Promise<Block> {
  const block = await session.block(quantity(session.head));
  if (!block) throw new Error('the newest block is not known');
  return block;
}

/** The kind of an account, by its code, in words. Native contracts have no code. */
export function whatItIs(address: string, code: string): string {
  const native = nativeName(address);
  if (native) return native;
  return code === '0x' ? 'an ordinary account' : `a contract of ${grouped(fromHex(code).length)} bytes`;
}

/** The form, and the answer below it. */
export function accountForm(session: Session): HTMLElement {
  const input = el('input', { value: session.source.account ?? '', autocomplete: 'off', spellcheck: 'false', required: true });
  const result = el('div');
  const show = resultDisplay(result, session);
  const ask = () => show(async () => {
    const address = toAddress(input.value);
    const block = await pinnedBlock(session);
    const at = block.number;
    const [balance, nonce, code, proof, verification] = await Promise.all([
      session.answer('eth_getBalance', address, at), session.request('eth_getTransactionCount', address, at),
      session.request('eth_getCode', address, at), session.request('eth_getProof', address, [], at) as Promise<AccountProof>, session.verification(at),
    ]);
    const [claimedBalance, claimedNonce, claimedCode] = await Promise.all([
      claimOf(session, 'eth_getBalance', address, at), claimOf(session, 'eth_getTransactionCount', address, at), claimOf(session, 'eth_getCode', address, at),
    ]);
    const amount = (text: string) => rbtc(word256(text));
    const count = (text: string) => grouped(word256(text));
    const kind = (text: string) => whatItIs(address, text);
    // In words, code of the same length is the same: other code is named as such.
    const claimedKind = (text: string) => (/^a contract/.test(kind(text)) && kind(text) === provenInWords(code, kind) && text.toLowerCase() !== code ? 'other code' : kind(text));
    return answerView(session, {
      lines: [
        { name: 'Balance', claimed: claimInWords(claimedBalance, amount), proven: provenInWords(balance.result, amount) },
        { name: 'Transactions sent', claimed: claimInWords(claimedNonce, count), proven: provenInWords(nonce, count) },
        { name: 'What it is', claimed: claimInWords(claimedCode, claimedKind), proven: provenInWords(code, kind) },
      ],
      level: balance.level, block, verification, trails: [accountTrail(block, address, proof, 'Proof of the account')],
    });
  });
  if (input.value) void ask();
  return el('div', {}, form({ class: 'form' }, ask, field('Address of an account', input), el('div', {}, el('button', { class: 'button main' }, 'Prove the account'))), result);
}
