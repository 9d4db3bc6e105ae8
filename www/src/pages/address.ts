// The page of an address: an account or a contract, its proven state, and forms for the contract's functions.
import type { Session } from '../chain/session.ts';
import { fromHex, grouped, rbtc, toAddress, toHex, word256 } from '../bytes.ts';
import { isToken } from '../contracts/decimals.ts';
import { el, put } from '../dom.ts';
import { keccak } from '../proof/hash.ts';
import { type AccountProof, accountTrail, pinnedBlock, whatItIs } from '../views/account.ts';
import { claimInWords, claimOf, comparison, provenInWords } from '../views/answer.ts';
import { functionsView } from '../views/functions.ts';
import { ladderView } from '../views/ladder.ts';
import { LINKED, nodeViews, trieTitle } from '../views/trail.ts';
import { bytesView, copyButton, factsView, headingView, link, miningProof, restsView, stateStep, descriptionView, toolsView, workSteps } from './common.ts';

/** Characters of a contract's code that are written out; the button copies all. */
const WRITTEN = 20_000;

/** The Keccak-256 hash of code. */
const hashOf = (code: string): string => toHex(keccak(fromHex(code)));

/** The proven code of a contract, with its bytes folded. */
const codeView = (code: string): HTMLElement => el('section', { class: 'card', 'aria-label': 'Code' },
  el('h2', {}, 'Code'),
  el('p', { class: 'description' }, 'The program that runs when somebody calls this contract. The state of the block commits to it, so that no node can show another one.'),
  el('dl', { class: 'facts wide' },
    el('div', {}, el('dt', {}, 'Size'), el('dd', { id: 'code-size' }, `${grouped(fromHex(code).length)} bytes`)),
    el('div', {}, el('dt', {}, 'Keccak-256, computed here'), el('dd', { class: 'mono break', id: 'code-hash' }, hashOf(code)))),
  el('details', {}, el('summary', {}, 'Its bytes'), bytesView(code.length > WRITTEN ? `${code.slice(0, WRITTEN)}…` : code)),
  el('div', { class: 'row' }, copyButton(code, 'Copy the code')));

/** A link to the page of a token, which appears once the contract has answered as a token does. */
function tokenLink(session: Session, address: string): HTMLElement {
  const slot = el('span');
  void isToken(session, address).catch(() => false).then((yes) => {
    // Tests wait for this mark.
    slot.dataset['token'] = String(yes);
    if (yes) put(slot, ' · ', link('token', address, 'as a token'));
  });
  return slot;
}

/** Makes the page; `id` is the address. */
export async function addressPage(session: Session, id = ''): Promise<HTMLElement> {
  const address = toAddress(id);
  const block = await pinnedBlock(session);
  const at = block.number;
  const [balance, nonce, code, proof, verification, work] = await Promise.all([
    session.request('eth_getBalance', address, at), session.request('eth_getTransactionCount', address, at), session.request('eth_getCode', address, at),
    session.request('eth_getProof', address, [], at) as Promise<AccountProof>, session.verification(at), miningProof(session, block),
  ]);
  const [claimedBalance, claimedNonce, claimedCode] = await Promise.all([claimOf(session, 'eth_getBalance', address, at), claimOf(session, 'eth_getTransactionCount', address, at), claimOf(session, 'eth_getCode', address, at)]);
  const amount = (text: string) => rbtc(word256(text));
  const count = (text: string) => grouped(word256(text));
  const kind = (text: string) => whatItIs(address, text);
  const compared = await comparison(session, { block, lines: [
    { name: 'Balance', claimed: claimInWords(claimedBalance, amount), proven: provenInWords(balance, amount) },
    { name: 'Transactions sent', claimed: claimInWords(claimedNonce, count), proven: provenInWords(nonce, count) },
    { name: 'What it is', claimed: claimInWords(claimedCode, kind), proven: provenInWords(code, kind) },
    { name: 'Code', claimed: claimInWords(claimedCode, hashOf), proven: provenInWords(code, hashOf) },
  ] });
  const { path, holds, value } = accountTrail(block, address, proof, '');
  const isContract = provenInWords(code, kind).startsWith('a contract');
  return el('article', {},
    headingView(isContract ? 'Contract' : 'Account', address, verification),
    factsView(
      ['Balance', provenInWords(balance, amount)], ['Transactions sent', provenInWords(nonce, count)], ['What it is', provenInWords(code, kind)], ['At block', link('block', String(Number(at)))],
      ...(isContract ? [['Also', el('a', { href: `#/logs/${address}` }, 'its logs'), tokenLink(session, address)] as const] : [])),
    restsView(block, verification),
    ladderView([
      ...workSteps(session, block, work),
      stateStep(block),
      { title: trieTitle(path.nodes.length), holds: path.linked, open: () => [descriptionView(LINKED), nodeViews(path)] },
      { title: path.found ? 'This account' : 'Nothing is here', holds, open: () => [descriptionView(path.found ? value : 'The path ends before this address: no such account exists, and that is proven.')] },
    ]),
    isContract && codeView(String(code)),
    isContract && functionsView(session, address),
    toolsView(session, compared, claimedBalance, ['eth_getBalance', address, at], { subject: 'account', document: { proof, header: block }, name: `account-${address.slice(2, 14)}-${Number(at)}.json` }));
}
