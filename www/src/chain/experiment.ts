// One question, asked in two ways: as an ordinary wallet does, which believes its node, and through a light client.
import { grouped, rbtc, short, units } from '../bytes.ts';
import { callData, number } from '../contracts/abi.ts';
import { reasonOf } from '../words.ts';
import { type LieName, lying } from './lies.ts';
import type { UpstreamReport } from './session.ts';
import type { Source } from './source.ts';
import { claim, type Exchange, toTransport, without } from './upstream.ts';

/** The names of the nodes, in the order in which the client gets them. */
export const NODES = ['Node A', 'Node B'] as const;

/** Milliseconds after which a client that cannot start gives up. */
const TIMEOUT = 8_000;

/** A fault that the client noted about a node. */
export interface Fault {
  readonly node: string;
  readonly rule: string;
  /** Whether no honest node gives such an answer; otherwise the answer is useless, whoever is to blame. */
  readonly lie: boolean;
}

export interface Outcome {
  readonly question: string;
  /** The display of a wallet that believes the first node. */
  readonly believed: string;
  /** The light client's answer; `undefined` if it refuses. */
  readonly proven: string | undefined;
  readonly refusal: string | undefined;
  readonly faults: readonly Fault[];
  readonly millis: number;
}

interface Question {
  readonly words: string;
  readonly method: string;
  readonly params: readonly unknown[];
  /** The answer in words. */
  readonly read: (answer: unknown) => string;
}

const lastAmount = (answer: unknown): string => {
  const data = (answer as { data: string }[]).at(-1)?.data;
  return data ? `a payment of ${units(number(data) ?? 0n)} DEMO` : 'no payment';
};

function question(source: Source, lie: LieName, head: string): Question {
  const { account = '', token = '' } = source;
  const who = short(account, 4, 4);
  if (lie === 'balance') {
    return { words: `How much does ${who} have?`, method: 'eth_getBalance', params: [account, head], read: (answer) => rbtc(BigInt(String(answer))) };
  }
  if (lie === 'token') {
    const data = callData('balanceOf(address)', [account]);
    return { words: `How many tokens does ${who} have?`, method: 'eth_call', params: [{ to: token, data }, head], read: (answer) => `${units(number(String(answer)) ?? 0n)} DEMO` };
  }
  if (lie === 'log') {
    const filter = { address: token, fromBlock: '0x2', toBlock: head };
    return { words: 'What was the last payment with the token?', method: 'eth_getLogs', params: [filter], read: lastAmount };
  }
  const read = (answer: unknown) => `block ${grouped(Number(head))} is ${short((answer as { hash: string }).hash, 4, 4)}`;
  return { words: 'What is the newest block?', method: 'eth_getBlockByNumber', params: [head, false], read };
}

/** Errors with the nodes' names: the client numbers functions. */
const named = (text: string): string => text.replaceAll(/upstream (\d)/g, (whole, index: string) => NODES[Number(index)] ?? whole);

async function proven(source: Source, exchanges: readonly Exchange[], { method, params, read }: Question): Promise<Pick<Outcome, 'proven' | 'refusal' | 'faults'>> {
  let provider;
  try {
    provider = await source.start(exchanges.map(toTransport), { timeout: TIMEOUT, store: null });
  } catch (error) {
    const rule = named(reasonOf(error));
    return { proven: undefined, refusal: rule, faults: [{ node: NODES[0], rule, lie: true }] };
  }
  try {
    const answer = await provider.request({ method, params }).then(
      (value) => ({ proven: read(value), refusal: undefined }),
      (error) => ({ proven: undefined, refusal: named(reasonOf(error)) }),
    );
    const reports = (await provider.request({ method: 'rootlight_upstreams', params: [] })) as UpstreamReport[];
    const faults = reports.flatMap(({ misbehaviour }, index) => misbehaviour.map(({ rule, lie }) => ({ node: NODES[index] ?? '', rule: named(rule), lie })));
    return { ...answer, faults };
  } finally {
    provider.close();
  }
}

/** Asks a chain whose first node may lie. With `helped`, the light client also has an honest node. */
export async function experiment(source: Source, about: LieName, lies: boolean, helped: boolean): Promise<Outcome> {
  const head = String(await claim(source.exchange, 'eth_blockNumber'));
  const asked = question(source, about, head);
  const honest = without(source.exchange, ['rootlight_getWitness', 'rootlight_getHeaders']);
  const first = lies ? lying(source.exchange, about, head) : honest;
  const believed = asked.read(await claim(first, asked.method, ...asked.params));
  const start = performance.now();
  const outcome = await proven(source, helped ? [first, honest] : [first], asked);
  return { question: asked.words, believed, ...outcome, millis: performance.now() - start };
}
