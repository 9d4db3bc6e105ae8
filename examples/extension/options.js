// The settings of the extension. Only this page writes them.
const [form, network, upstreams, saved, failure] = ['form', 'network', 'upstreams', 'saved', 'failure'].map((id) => document.getElementById(id));

const { settings } = await chrome.storage.local.get('settings');
if (settings) {
  network.value = settings.network;
  upstreams.value = settings.upstreams.join('\n');
}

// Only this page sees the words of failures, which may name the user's node.
if (settings) {
  const port = chrome.runtime.connect({ name: 'rootlight' });
  port.onMessage.addListener(({ result, error, connection }) => {
    failure.value = error?.message ?? result?.fault ?? connection?.message ?? 'none';
  });
  port.postMessage({ id: 1, method: 'rootlight_syncStatus', params: [] });
}

/** Whether a text is the whole address of a node. */
const isAddress = (text) => URL.canParse(text) && /^(?:https?|wss?):$/.test(new URL(text).protocol);

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  const list = upstreams.value.split('\n').map((line) => line.trim()).filter(Boolean);
  const wrong = list.find((line) => !isAddress(line));
  if (wrong !== undefined || list.length === 0) {
    saved.value = `Not saved: ${wrong === undefined ? 'name a node' : `${wrong} is not an address: it begins with http, https, ws or wss`}.`;
    return;
  }
  await chrome.storage.local.set({ settings: { network: network.value, upstreams: list } });
  saved.value = 'Saved.';
});
