// Connects page.js, which runs among the page's scripts, with the extension's worker. The page can forge these messages, which
// gives it nothing that its own requests do not.
let port;

/** Longest request, in characters of JSON: as in session.js. A longer one does not reach the worker, which serves all pages. */
const LONGEST = 256 * 1024;

const post = (message) => window.postMessage({ from: 'rootlight-extension', ...message }, window.origin);

function connection() {
  if (port) return port;
  const opened = chrome.runtime.connect({ name: 'rootlight' });
  port = opened;
  opened.onMessage.addListener(post);
  // The browser ends an idle worker; the next request opens another connection.
  opened.onDisconnect.addListener(() => {
    if (port !== opened) return;
    port = undefined;
    post({ lost: true });
  });
  return opened;
}

window.addEventListener('message', ({ source, data }) => {
  if (source !== window || data?.from !== 'rootlight-page') return;
  const { id, method, params } = data;
  const refuse = (code, message) => post({ id, error: { code, message } });
  // page.js gives a number to each request.
  if (!Number.isSafeInteger(id)) return undefined;
  if (typeof method !== 'string') return refuse(-32600, 'give a method and params');
  try {
    if (JSON.stringify([method, params]).length > LONGEST) return refuse(-32005, `a request has at most ${LONGEST} characters`);
  } catch (error) {
    return refuse(-32600, `params must be representable as JSON: ${error.message}`);
  }
  try {
    connection().postMessage({ id, method, params });
  } catch {
    port = undefined;
    refuse(4900, 'the extension was updated or removed: load the page again');
  }
  return undefined;
});
