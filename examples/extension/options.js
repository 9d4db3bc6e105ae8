// The settings of the extension, and whether it answers with them. Only this page writes them.
const [form, network, upstreams, saved, state, failure] = ['form', 'network', 'upstreams', 'saved', 'state', 'failure'].map((id) => document.getElementById(id));

/** Milliseconds between two looks at the state. */
const LOOK = 3_000;

/** The connection to the extension's worker, and the request that it has not answered. */
let port;
let asked = 0;
let count = 0;

/** Whether no node answers now, in the client's words. */
let lost;

/** Shows the state, and in words what is wrong. Only this page sees the words of failures, which may name the user's node. */
function show(kind, words, trouble = '') {
  state.dataset.kind = kind;
  if (state.value !== words) state.value = words;
  if (failure.value !== trouble) failure.value = trouble;
}

function told({ result, error, connection }) {
  if (connection) lost = connection.message;
  if (lost) return show('none', 'No node answers. The extension goes on asking.', lost);
  if (connection) return undefined;
  asked = 0;
  if (error) return show('none', 'Pages get no answers.', error.message);
  const { synced, currentBlock, highestBlock, fault } = result;
  if (fault) return show('none', 'Pages get no new answers.', fault);
  if (!synced) return show('busy', `Checking the chain: block ${Number(currentBlock)} of ${Number(highestBlock)}.`);
  return show('ready', `Ready: the chain is checked up to block ${Number(currentBlock)}.`);
}

function connect() {
  const opened = chrome.runtime.connect({ name: 'rootlight' });
  port = opened;
  lost = undefined;
  asked = 0;
  opened.onMessage.addListener(told);
  // After a change of the settings, or when the browser has ended the idle worker.
  opened.onDisconnect.addListener(() => {
    if (port === opened) port = undefined;
  });
}

/** Asks for the state, unless an answer is still awaited. */
async function look() {
  const { settings } = await chrome.storage.local.get('settings');
  if (!settings) return show('none', 'Not set up: name a node below, and save. Until then pages get no answers.');
  if (!port) connect();
  if (asked !== 0) return undefined;
  count += 1;
  asked = count;
  if (!state.dataset.kind || state.dataset.kind === 'saved') show('busy', 'Checking the newest headers of the chain with your nodes…');
  return port.postMessage({ id: count, method: 'rootlight_syncStatus', params: [] });
}

/** Whether a text is the whole address of a node. */
const isAddress = (text) => URL.canParse(text) && /^(?:https?|wss?):$/.test(new URL(text).protocol);

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  const list = upstreams.value.split('\n').map((line) => line.trim()).filter(Boolean);
  const wrong = list.find((line) => !isAddress(line));
  upstreams.setAttribute('aria-invalid', String(wrong !== undefined || list.length === 0));
  if (wrong !== undefined || list.length === 0) {
    saved.value = `Not saved: ${wrong === undefined ? 'name a node' : `${wrong} is not an address: it begins with http, https, ws or wss`}.`;
    return upstreams.focus();
  }
  await chrome.storage.local.set({ settings: { network: network.value, upstreams: list } });
  saved.value = 'Saved.';
  state.dataset.kind = 'saved';
  port?.disconnect();
  port = undefined;
  return look();
});

const { settings } = await chrome.storage.local.get('settings');
if (settings) {
  network.value = settings.network;
  upstreams.value = settings.upstreams.join('\n');
}
await look();
setInterval(look, LOOK);
