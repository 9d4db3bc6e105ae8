// Functions in a page of Firefox, by the bidirectional WebDriver protocol: they run with the page's own global object, while
// the classic protocol gives each of them another one.
import WebSocket from 'ws';

/** Connects to a session: {run(context, asyncFunction, args), close()}. */
export async function connectBidi(url) {
  const socket = new WebSocket(url);
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  const waiting = new Map();
  let last = 0;
  socket.on('message', (data) => {
    const { id, ...answer } = JSON.parse(data);
    waiting.get(id)?.(answer);
    waiting.delete(id);
  });
  const command = async (method, params) => {
    const id = ++last;
    const answered = new Promise((resolve) => waiting.set(id, resolve));
    socket.send(JSON.stringify({ id, method, params }));
    const { type, result, error, message } = await answered;
    if (type === 'error') throw new Error(`${error}: ${message}`);
    return result;
  };
  return {
    async run(context, work, args) {
      const called = await command('script.callFunction', {
        functionDeclaration: `async (text) => {
          try {
            return JSON.stringify({ value: await (${work})(...JSON.parse(text)) });
          } catch (error) {
            return JSON.stringify({ error: { message: String(error?.message ?? error), code: error?.code, stack: error?.stack } });
          }
        }`,
        arguments: [{ type: 'string', value: JSON.stringify(args) }],
        target: { context },
        awaitPromise: true,
      });
      if (called.type !== 'success') throw new Error(called.exceptionDetails.text);
      return JSON.parse(called.result.value);
    },
    close: () => socket.close(),
  };
}
