// An account or a contract: what it has, and what it answers.
import type { Session } from '../chain/session.ts';
import { grouped, rbtc, toAddress, word256 } from '../bytes.ts';
import { el } from '../dom.ts';
import { type AccountProof, accountTrail, pinned, whatItIs } from '../views/account.ts';
import { comparison, heard, read, said } from '../views/answer.ts';
import { functionsView } from '../views/functions.ts';
import { ladderView } from '../views/ladder.ts';
import { nodeViews } from '../views/trail.ts';
import { bytesView, factsView, headingView, link, miningProof, tellsView, toolsView, workSteps } from './common.ts';

export async function addressPage(session: Session, id = ''): Promise<HTMLElement> {
  const address = toAddress(id);
  const block = await pinned(session);
  const at = block.number;
  const [balance, nonce, code, proof, verification, work] = await Promise.all([
    session.request('eth_getBalance', address, at), session.request('eth_getTransactionCount', address, at), session.request('eth_getCode', address, at),
    session.request('eth_getProof', address, [], at) as Promise<AccountProof>, session.verification(at), miningProof(session, block),
  ]);
  const [saidBalance, saidNonce, saidCode] = await Promise.all([said(session, 'eth_getBalance', address, at), said(session, 'eth_getTransactionCount', address, at), said(session, 'eth_getCode', address, at)]);
  const amount = (text: string) => rbtc(word256(text));
  const count = (text: string) => grouped(word256(text));
  const kind = (text: string) => whatItIs(address, text);
  const compared = await comparison(session, { block, lines: [
    { name: 'Balance', claimed: heard(saidBalance, amount), proven: read(balance, amount) },
    { name: 'Transactions sent', claimed: heard(saidNonce, count), proven: read(nonce, count) },
    { name: 'What it is', claimed: heard(saidCode, kind), proven: read(code, kind) },
  ] });
  const { path, holds, value } = accountTrail(block, address, proof, '');
  const isContract = read(code, kind).startsWith('a contract');
  return el('article', {},
    headingView(isContract ? 'Contract' : 'Account', address, verification),
    factsView(
      ['Balance', read(balance, amount)], ['Transactions sent', read(nonce, count)], ['What it is', read(code, kind)], ['At block', link('block', String(Number(at)))],
      ...(isContract ? [['Also', link('token', address, 'as a token'), ' · ', el('a', { href: `#/logs/${address}` }, 'its logs')] as const] : [])),
    ladderView([
      ...workSteps(session, block, work),
      { title: 'The block names all its state', holds: true, open: () => [tellsView('The state root in the header of the block: one hash for all accounts.'), bytesView(block.stateRoot)] },
      { title: `${path.nodes.length} nodes of a trie`, holds: path.linked, open: () => [tellsView('Each node must have the hash that the one above it names; the part that leads on is marked.'), nodeViews(path)] },
      { title: path.found ? 'This account' : 'Nothing is here', holds, open: () => [tellsView(path.found ? value : 'The path ends before this address: no such account exists, and that is proven.')] },
    ]),
    isContract && functionsView(session, address),
    toolsView(session, compared, saidBalance, ['eth_getBalance', address, at], { subject: 'account', document: { proof, header: block }, name: `account-${address.slice(2, 14)}-${Number(at)}.json` }));
}
