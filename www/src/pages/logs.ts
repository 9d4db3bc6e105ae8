// The page of logs, of one contract or of all: the logs of the newest blocks, and the proof that none is left out.
import type { Block, Session } from '../chain/session.ts';
import { grouped, quantity, toAddress } from '../bytes.ts';
import { el } from '../dom.ts';
import { refusalView, standing } from '../views/answer.ts';
import { ladderView, type Step } from '../views/ladder.ts';
import { countOf, type Log, logsAnswer, type LogsAnswer, logsQuestion, rangeOf, receiptTrail, USUAL } from '../views/logs.ts';
import { goTo } from '../views/search.ts';
import { bytesView, descriptionView, fillLater, link, miningProof, toolsView, workSteps } from './common.ts';

/** The word for all contracts in the page's address. */
const ALL = 'all';

/** Most blocks whose receipts roots are written out. */
const MOST_ROOTS = 5;

/** The receipts roots of the blocks with these logs. */
async function roots(session: Session, logs: readonly Log[]): Promise<HTMLElement> {
  const numbers = [...new Set(logs.map(({ blockNumber }) => blockNumber))].slice(0, MOST_ROOTS);
  const blocks = await Promise.all(numbers.map((number) => session.block(number)));
  return el('div', {}, ...blocks.filter((block) => block !== null).flatMap(({ number, receiptsRoot }) => [el('p', { class: 'small' }, 'Block ', link('block', String(Number(number))), ' names its receipts:'), bytesView(receiptsRoot)]));
}

/** The last three steps: all headers of the range, all receipts of blocks with logs, and these logs. */
function steps(session: Session, { logs, filter }: LogsAnswer): Step[] {
  const [newest] = logs;
  const holding = new Set(logs.map(({ blockNumber }) => blockNumber)).size;
  return [
    { title: `The headers of ${rangeOf(session, filter)} name the receipts`, holds: true, open: () => [
      descriptionView('Each header names the one before it, the common hash of its block’s receipts, and a filter of their logs (a bloom): a log that the filter does not know is in none of them.'),
      fillLater(el('div'), roots(session, logs), refusalView)] },
    { title: holding === 0 ? 'All receipts that could hold one' : `All receipts of ${grouped(holding)} block${holding === 1 ? '' : 's'}`, holds: true, open: () => [
      descriptionView(newest ? 'Where a filter lets the question through, all receipts of the block were fetched and hashed again here, so that none is missing and none is added. The path to the newest log’s receipt:' : 'Where a filter lets the question through, all receipts of the block were fetched and hashed again here. They hold no such log.'),
      ...(newest ? [fillLater(el('div'), receiptTrail(session, newest), refusalView)] : [])] },
    { title: logs.length === 0 ? 'No log' : `${logs.length === 1 ? 'This log' : `These ${grouped(logs.length)} logs`}`, holds: true, open: () => [
      descriptionView('What the receipts hold is the answer: nothing else is shown, and nothing is left out. The newest, in bytes:'), bytesView(newest ? `${newest.topics.join(' ')} ${newest.data.slice(0, 4_000)}` : 'none')] },
  ];
}

/** Makes the page; `contract` is an address or `all`, `count` the number of newest blocks as text. */
export async function logsPage(session: Session, contract = ALL, count = USUAL): Promise<HTMLElement> {
  const address = contract === ALL || contract === '' ? '' : toAddress(contract);
  const answer = await logsAnswer(session, address, countOf(count));
  const block = await session.block(quantity(Number(answer.filter.toBlock))) as Block;
  const work = await miningProof(session, block);
  const wrong = el('div', { 'aria-live': 'polite' });
  const differs = answer.differs !== undefined && el('p', { class: `note ${answer.differs}` }, 'What the node says differs: see above.');
  return el('article', {},
    el('h1', {}, 'Logs'),
    descriptionView('What contracts reported in the newest blocks. Each log stands in a receipt that its block commits to.'),
    logsQuestion(address, count, (given, blocks) => goTo(wrong, () => `#/logs/${given === '' ? ALL : toAddress(given)}/${countOf(blocks)}`)), wrong,
    answer.list, answer.logs.length > 0 && el('p', { class: 'small' }, 'The page of each log’s transaction gives its proof as a file.'),
    standing(answer.level, answer.verification),
    ladderView([...workSteps(session, block, work), ...steps(session, answer)]),
    toolsView(session, differs, answer.claim, ['eth_getLogs', answer.filter]));
}
