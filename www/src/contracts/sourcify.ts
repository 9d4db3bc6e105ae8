// Gets the functions of a contract from a Sourcify server, a register of contracts' source code. The operator of this page's server may name one.
// The functions are not proven.
import { type ContractFunction, functionsOf, LONGEST } from './interface.ts';

/** The HTTP header of this page in which its server names the Sourcify server. The page's security policy allows no other one. */
const HEADER = 'x-rootlight-sourcify';

/** Milliseconds that the Sourcify server may take. */
const TIMEOUT = 15_000;

/** The Sourcify server's address; undefined if the operator names none. */
export async function sourcifyAddress(): Promise<URL | undefined> {
  const own = await fetch(location.pathname, { method: 'HEAD', cache: 'no-store' }).catch(() => undefined);
  const named = own?.headers.get(HEADER) ?? '';
  return /^https?:\/\//.test(named) && URL.canParse(named) ? new URL(named) : undefined;
}

/** The text of a response; no more of it is read than the longest ABI has. */
async function textOf(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = '';
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
    if (done) return text + decoder.decode();
    text += decoder.decode(value, { stream: true });
    if (text.length <= LONGEST) continue;
    await reader?.cancel();
    throw new Error(`the answer has more than ${LONGEST} characters, which are not read`);
  }
}

/** The functions that the Sourcify server publishes for a contract; the error says why there are none. */
export async function publishedFunctions(server: URL, chainId: number, address: string): Promise<readonly ContractFunction[]> {
  const endpoint = `${server.href.replace(/\/$/, '')}/v2/contract/${chainId}/${address}?fields=abi`;
  const failed = (reason: string) => new Error(`${server.host} gives no functions: ${reason}`);
  const response = await fetch(endpoint, { credentials: 'omit', referrerPolicy: 'no-referrer', redirect: 'error', signal: AbortSignal.timeout(TIMEOUT) })
    .catch((error: unknown) => { throw failed(error instanceof DOMException && error.name === 'TimeoutError' ? 'no answer within 15 s' : 'nobody answers there, or pages of this server are not allowed'); });
  if (response.status === 404) throw failed('nobody has published this contract there. Paste the ABI from its author');
  if (!response.ok) throw failed(`HTTP status ${response.status}`);
  return textOf(response).then(functionsOf).catch((error: Error) => { throw failed(error.message); });
}
