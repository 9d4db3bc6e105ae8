// Connects page.js, which runs among the page's scripts, with the extension's worker. The page can forge these messages, which
// gives it nothing that its own requests do not.
let port;

/** Longest request, in characters of JSON: as in session.js. A longer one does not reach the worker, which serves all pages. */
const LONGEST = 256 * 1024;

/** Most requests in progress: as in budget.js for all pages of a site. */
const PENDING = 32;

/** Milliseconds in which nothing reaches the worker after it has refused a request for the site's budget. */
const REST = 1_000;

/** The requests in progress. */
const pending = new Set();
let notBefore = 0;

const post = (message) => window.postMessage({ from: 'rootlight-extension', ...message }, window.origin);

function connection() {
  if (port) return port;
  const opened = chrome.runtime.connect({ name: 'rootlight' });
  port = opened;
  opened.onMessage.addListener((message) => {
    pending.delete(message.id);
    if (message.isBusy) notBefore = performance.now() + REST;
    post(message);
  });
  // The browser ends an idle worker; the next request opens another connection.
  opened.onDisconnect.addListener(() => {
    if (port !== opened) return;
    port = undefined;
    pending.clear();
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
  // A refusal by the worker costs it a copy of the request.
  if (pending.size >= PENDING || pending.has(id) || performance.now() < notBefore) return refuse(-32005, 'this page asks for too much at a time');
  try {
    if (JSON.stringify([method, params]).length > LONGEST) return refuse(-32005, `a request has at most ${LONGEST} characters`);
  } catch (error) {
    return refuse(-32600, `params must be representable as JSON: ${error.message}`);
  }
  try {
    connection().postMessage({ id, method, params });
    pending.add(id);
  } catch {
    port = undefined;
    refuse(4900, 'the extension was updated or removed: load the page again');
  }
  return undefined;
});
