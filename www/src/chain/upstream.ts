// Upstreams of the light client as functions that answer JSON-RPC calls, and wrappers that hide or change answers.
import type { Provider, Transport } from '../../../pkg/index.js';

/** A JSON-RPC request. */
export interface Call {
  readonly jsonrpc: '2.0';
  readonly id: number;
  readonly method: string;
  readonly params: readonly unknown[];
}

/** A JSON-RPC response. */
export interface Reply {
  readonly jsonrpc: '2.0';
  readonly id: number;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

/** Answers calls with replies in the same order. */
export type Exchange = (calls: readonly Call[]) => Promise<Reply[]>;

/** The error of an upstream that was asked directly. */
class UpstreamError extends Error {}

/** The reply to a call whose method the upstream does not have. */
const notFound = ({ id }: Call): Reply => ({ jsonrpc: '2.0', id, error: { code: -32601, message: 'method not found' } });

/** The exchange with a development chain in this tab. */
export function overChain(chain: Pick<Provider, 'request'>): Exchange {
  const one = ({ id, method, params }: Call): Promise<Reply> =>
    chain.request({ method, params }).then(
      (result) => ({ jsonrpc: '2.0', id, result }),
      ({ code, message }) => ({ jsonrpc: '2.0', id, error: { code, message } }),
    );
  return (calls) => Promise.all(calls.map(one));
}

/** The exchange with a server, through a transport of the package. */
export function overTransport(transport: Transport): Exchange {
  return async (calls) => {
    const single = calls.length === 1;
    const bytes = await transport(JSON.stringify(single ? calls[0] : calls));
    const answer = JSON.parse(new TextDecoder().decode(bytes)) as Reply | Reply[];
    const replies = Array.isArray(answer) ? answer : [answer];
    // An error for the whole batch answers each of its calls.
    const whole = !single && !Array.isArray(answer) ? answer : undefined;
    return calls.map((call) => whole ?? replies.find((reply) => reply.id === call.id) ?? notFound(call));
  };
}

/** Wraps an exchange: it answers "method not found" for some methods. */
export function without(exchange: Exchange, methods: readonly string[]): Exchange {
  return async (calls) => {
    const passed = calls.filter(({ method }) => !methods.includes(method));
    const replies = passed.length > 0 ? await exchange(passed) : [];
    return calls.map((call) => replies.find((reply) => reply.id === call.id) ?? notFound(call));
  };
}

/** Wraps an exchange: `change` gets each call with its reply, and returns the reply to pass on. */
export function through(exchange: Exchange, change: (call: Call, reply: Reply) => Reply | Promise<Reply>): Exchange {
  return async (calls) => {
    const replies = await exchange(calls);
    return Promise.all(calls.map((call, at) => change(call, replies[at] ?? notFound(call))));
  };
}

/** An exchange as a transport of the package. */
export function toTransport(exchange: Exchange): Transport {
  return async (body) => {
    const message = JSON.parse(body) as Call | Call[];
    const replies = await exchange(Array.isArray(message) ? message : [message]);
    return new TextEncoder().encode(JSON.stringify(Array.isArray(message) ? replies : replies[0]));
  };
}

/** Asks an upstream directly and believes it, as a wallet does that verifies nothing. */
export async function uncheckedAnswer(exchange: Exchange, method: string, ...params: readonly unknown[]): Promise<unknown> {
  const [reply] = await exchange([{ jsonrpc: '2.0', id: 1, method, params }]);
  if (reply?.error) throw new UpstreamError(reply.error.message);
  return reply?.result;
}

/** Calls several methods without parameters in one request, and believes the answers. An answer that is an error is `undefined`. */
export async function uncheckedAnswers(exchange: Exchange, ...methods: readonly string[]): Promise<unknown[]> {
  const replies = await exchange(methods.map((method, id) => ({ jsonrpc: '2.0', id, method, params: [] })));
  return replies.map(({ result }) => result);
}
