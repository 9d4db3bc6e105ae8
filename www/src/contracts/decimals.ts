// The decimals of tokens, by proven calls of their contracts. Amounts of a contract that states no decimals are shown as whole numbers.
import type { Session } from '../chain/session.ts';
import { callData, number, text } from './abi.ts';
import { grouped, units } from '../bytes.ts';

/** Most contracts that are called for one list of logs: each call costs a proof. */
const MOST_CONTRACTS = 10;

/** Most decimals that are accepted: a number of 256 bits has no more than 78 digits. */
const MOST_DECIMALS = 77n;

/** Decimals by contract, in lower case, of the contracts that were called and stated them. */
export type Decimals = ReadonlyMap<string, number>;

/** The answers of contracts, by session. */
const known = new WeakMap<Session, Map<string, Promise<number | undefined>>>();

/** Calls `decimals()`; `undefined` if the contract states none that make sense. */
async function ask(session: Session, token: string): Promise<number | undefined> {
  const answer = await session.request('eth_call', { to: token, data: callData('decimals()', []) }, 'latest').catch(() => undefined);
  const places = typeof answer === 'string' ? number(answer) : undefined;
  return places === undefined || places > MOST_DECIMALS ? undefined : Number(places);
}

/** Whether a contract answers as tokens do: with a symbol, decimals and a supply. */
export async function isToken(session: Session, contract: string): Promise<boolean> {
  const asked = ['symbol()', 'totalSupply()'].map((name) => session.request('eth_call', { to: contract, data: callData(name, []) }, 'latest'));
  const [answers, decimals] = await Promise.all([Promise.all(asked), decimalsOf(session, [contract])]);
  const [symbol, supply] = answers.map(String);
  return decimals.size > 0 && text(symbol ?? '0x') !== undefined && number(supply ?? '0x') !== undefined;
}

/** The decimals of these contracts, as far as their proven answers name any. */
export async function decimalsOf(session: Session, contracts: Iterable<string>): Promise<Decimals> {
  if (session.lacksState) return new Map();
  const answers = known.get(session) ?? new Map<string, Promise<number | undefined>>();
  known.set(session, answers);
  const asked = [...new Set([...contracts].map((contract) => contract.toLowerCase()))].slice(0, MOST_CONTRACTS);
  const found = await Promise.all(asked.map(async (token) => {
    const answer = answers.get(token) ?? ask(session, token);
    answers.set(token, answer);
    return [token, await answer] as const;
  }));
  return new Map(found.flatMap(([token, places]) => (places === undefined ? [] : [[token, places]])));
}

/** An amount of a token: with its decimals, or as the whole number of the contract's smallest units. */
export function amountOf(count: bigint, token: string, decimals: Decimals): string {
  const places = decimals.get(token.toLowerCase());
  return places === undefined ? `${grouped(count)} units` : units(count, places);
}
