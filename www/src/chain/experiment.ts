// Asks one question in two ways: as an ordinary wallet does, which believes its node, and through a light client. The node may lie. The sections
// "demo" and "tamper" show the outcome.
import { grouped, rbtc, short, units } from '../bytes.ts';
import { callData, number } from '../contracts/abi.ts';
import { reasonOf } from '../words.ts';
import { type LieName, lying } from './lies.ts';
import type { UpstreamReport } from './session.ts';
import type { Source } from './source.ts';
import { type Exchange, toTransport, uncheckedAnswer, without } from './upstream.ts';

/** The names of the nodes, in the order in which the client gets them. */
export const NODES = ['Node A', 'Node B'] as const;

/** Milliseconds after which a client that cannot start gives up. */
const TIMEOUT = 8_000;

/** A rule that an answer of a node has broken, as the client recorded it. */
export interface Fault {
  readonly node: string;
  readonly rule: string;
  /** Whether the answer is a lie: no honest node gives it. Otherwise it is useless, and an honest node may have given it. */
  readonly lie: boolean;
}

/** Both answers to a question. */
export interface Outcome {
  /** The question in words. */
  readonly question: string;
  /** The display of a wallet that believes the first node. */
  readonly believed: string;
  /** The light client's answer; `undefined` if it refuses. */
  readonly proven: string | undefined;
  /** Why the light client refuses. */
  readonly refusal: string | undefined;
  readonly faults: readonly Fault[];
  /** Time that the light client took, in milliseconds. */
  readonly millis: number;
}

/** A question as a request, and in words. */
interface Question {
  readonly words: string;
  readonly method: string;
  readonly params: readonly unknown[];
  /** The answer in words. */
  readonly read: (answer: unknown) => string;
}

/** The amount of the last of some logs of the token. */
const lastAmount = (answer: unknown): string => {
  const data = (answer as { data: string }[]).at(-1)?.data;
  return data ? `a payment of ${units(number(data) ?? 0n)} DEMO` : 'no payment';
};

/** The question that a lie is about, at the block `head`. */
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
    // Block 1 deploys the token, with a log of the first tokens that is no payment.
    const filter = { address: token, fromBlock: '0x2', toBlock: head };
    return { words: 'What was the last payment with the token?', method: 'eth_getLogs', params: [filter], read: lastAmount };
  }
  const read = (answer: unknown) => `block ${grouped(Number(head))} is ${short((answer as { hash: string }).hash, 4, 4)}`;
  return { words: 'What is the newest block?', method: 'eth_getBlockByNumber', params: [head, false], read };
}

/** An error with the nodes' names: the client calls upstreams that are functions `upstream 0` and so on. */
const withNodeNames = (text: string): string => text.replaceAll(/upstream (\d)/g, (whole, index: string) => NODES[Number(index)] ?? whole);

/** The answer of a light client whose upstreams are these exchanges. */
async function proven(source: Source, exchanges: readonly Exchange[], { method, params, read }: Question): Promise<Pick<Outcome, 'proven' | 'refusal' | 'faults'>> {
  let provider;
  try {
    provider = await source.start(exchanges.map(toTransport), { timeout: TIMEOUT, store: null });
  } catch (error) {
    // A client that does not start refuses its first node's chain.
    const rule = withNodeNames(reasonOf(error));
    return { proven: undefined, refusal: rule, faults: [{ node: NODES[0], rule, lie: true }] };
  }
  try {
    const answer = await provider.request({ method, params }).then(
      (value) => ({ proven: read(value), refusal: undefined }),
      (error) => ({ proven: undefined, refusal: withNodeNames(reasonOf(error)) }),
    );
    const reports = (await provider.request({ method: 'rootlight_upstreams', params: [] })) as UpstreamReport[];
    const faults = reports.flatMap(({ misbehaviour }, index) => misbehaviour.map(({ rule, lie }) => ({ node: NODES[index] ?? '', rule: withNodeNames(rule), lie })));
    return { ...answer, faults };
  } finally {
    provider.close();
  }
}

/** Runs the experiment about a lie. With `lies` the first node tells that lie; with `helped` the light client also has a second, honest node. */
export async function experiment(source: Source, about: LieName, { lies, helped }: { lies: boolean; helped: boolean }): Promise<Outcome> {
  const head = String(await uncheckedAnswer(source.exchange, 'eth_blockNumber'));
  const asked = question(source, about, head);
  // The honest node lacks the methods that answer with many proofs at once, as the lying node does.
  const honest = without(source.exchange, ['rootlight_getWitness', 'rootlight_getHeaders']);
  const first = lies ? lying(source.exchange, about, head) : honest;
  const believed = asked.read(await uncheckedAnswer(first, asked.method, ...asked.params));
  const start = performance.now();
  const outcome = await proven(source, helped ? [first, honest] : [first], asked);
  return { question: asked.words, believed, ...outcome, millis: performance.now() - start };
}
