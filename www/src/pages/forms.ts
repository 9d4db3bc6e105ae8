// Pages that are one of the explorer's forms, with what the address names filled in.
import type { Session } from '../chain/session.ts';
import { toAddress } from '../bytes.ts';
import { el } from '../dom.ts';
import { tokenForm } from '../views/contract.ts';
import { logsForm } from '../views/logs.ts';
import { link } from './common.ts';

const page = (title: string, tells: Node | string, body: HTMLElement) => el('article', { class: 'answers' }, el('h2', {}, title), el('p', { class: 'tells' }, tells), body);

export async function tokenPage(session: Session, contract = '', holder = ''): Promise<HTMLElement> {
  const token = toAddress(contract);
  const tells = el('span', {}, 'The contract ', link('address', token), '. Its name and symbol are what the contract says: anybody may copy another token’s name, nobody its address.');
  return page('Token', tells, tokenForm(session, token, holder === '' ? session.source.account : toAddress(holder)));
}

export async function logsPage(session: Session, contract = ''): Promise<HTMLElement> {
  return page('Logs', 'What contracts reported in the newest blocks. Each log stands in a receipt that its block commits to.', logsForm(session, contract === '' ? session.source.token : toAddress(contract)));
}
