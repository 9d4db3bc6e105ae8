// The page of a token: how much of it a holder has, computed here from proven state.
import type { Session } from '../chain/session.ts';
import { safeText, toAddress } from '../bytes.ts';
import { el, field } from '../dom.ts';
import { reverts } from '../words.ts';
import { comparison } from '../views/answer.ts';
import { HOLDER, tokenAnswer } from '../views/contract.ts';
import { ladderView, type Step } from '../views/ladder.ts';
import { LINKED, nodeViews, trieTitle } from '../views/trail.ts';
import { bytesView, factsView, guided, headingView, link, miningProof, questionView, restsView, stateStep, descriptionView, toolsView, workSteps } from './common.ts';

/** What the proof file covers: the contract's state. The balance is computed from that state by the contract's code. */
const COVERS = 'The file proves the account of the token’s contract and the storage cells that its code read; the balance follows by running that code on them.';

/** The last two steps: the storage cells that the token's code read, and the balance that it computed from them. */
function steps({ trails, question, bytes, lines }: Awaited<ReturnType<typeof tokenAnswer>>): Step[] {
  const count = trails.reduce((sum, { path }) => sum + path.nodes.length, 0);
  const [, { data }] = question;
  return [
    { title: trieTitle(count), holds: trails.every(({ path }) => path.linked), open: () => [
      descriptionView(`The paths to the contract and to the storage cells that its code read. ${LINKED}`),
      ...trails.flatMap(({ title, value, path }) => [el('h4', {}, title), descriptionView(value), nodeViews(path)])] },
    { title: 'This balance', holds: trails.every(({ holds }) => holds), open: () => [
      descriptionView('The contract’s code was run in this tab on these cells. The question and the answer in bytes:'), bytesView(data), bytesView(bytes), descriptionView(`In words: ${lines[0]?.proven ?? ''}`)] },
  ];
}

/** Makes the page; `holder` is the session's example account if it is empty. */
export async function tokenPage(session: Session, contract = '', holder = ''): Promise<HTMLElement> {
  const token = toAddress(contract);
  const who = holder === '' ? session.source.account ?? token : toAddress(holder);
  const answer = await tokenAnswer(session, token, who).catch((error: unknown) => {
    throw reverts(error) ? guided(error, 'The contract ', link('address', token, token), ' does not answer as a token does: with name, symbol, decimals and balances.') : error;
  });
  const { block, lines: [balance, ...lines], verification, proof, question, claim } = answer;
  const work = await miningProof(session, block);
  const compared = await comparison(session, answer);
  const input = el('input', { autocomplete: 'off', spellcheck: 'false', required: true });
  return el('article', {},
    headingView('Token', token, verification),
    descriptionView('Its name and symbol are what the contract says: anybody may copy another token’s name, nobody its address.'),
    factsView(['Holder', link('address', who)], ['Balance', balance?.proven, ' ', /^\d/.test(balance?.proven ?? '') && el('bdi', { class: 'small' }, safeText(lines[1]?.proven ?? ''))], ...lines.map(({ name, proven }) => [name, safeText(proven)] as const), ['Contract', link('address', token)], ['At block', link('block', String(Number(block.number)))]),
    questionView('Prove the balance', () => `#/token/${token}/${toAddress(input.value)}`, field('Address of another holder', input, HOLDER)),
    restsView(block, verification),
    ladderView([...workSteps(session, block, work), stateStep(block), ...steps(answer)]),
    toolsView(session, compared, claim, question, { subject: 'account', document: { proof, header: block }, covers: COVERS, name: `token-${token.slice(2, 14)}-${Number(block.number)}.json` }));
}
