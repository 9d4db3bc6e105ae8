// Connects page.js, which runs among the page's scripts, with the extension's worker. The page can forge these messages, which
// gives it nothing that its own requests do not.
let port;

function connection() {
  if (port) return port;
  const opened = chrome.runtime.connect({ name: 'rootlight' });
  port = opened;
  opened.onMessage.addListener((message) => window.postMessage({ from: 'rootlight-extension', ...message }, window.origin));
  // The browser ends an idle worker; the next request opens another connection.
  opened.onDisconnect.addListener(() => {
    if (port !== opened) return;
    port = undefined;
    window.postMessage({ from: 'rootlight-extension', lost: true }, window.origin);
  });
  return opened;
}

window.addEventListener('message', ({ source, data }) => {
  if (source !== window || data?.from !== 'rootlight-page') return;
  const { id, method, params } = data;
  connection().postMessage({ id, method, params });
});
