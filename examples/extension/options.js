// The settings of the extension. Only this page writes them.
const [form, network, upstreams, saved] = ['form', 'network', 'upstreams', 'saved'].map((id) => document.getElementById(id));

const { settings } = await chrome.storage.local.get('settings');
if (settings) {
  network.value = settings.network;
  upstreams.value = settings.upstreams.join('\n');
}

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  const list = upstreams.value.split('\n').map((line) => line.trim()).filter(Boolean);
  const checkpoint = network.value === 'mainnet' ? { checkpoint: 'work' } : {};
  await chrome.storage.local.set({ settings: { network: network.value, upstreams: list, ...checkpoint } });
  saved.value = 'Saved.';
});
