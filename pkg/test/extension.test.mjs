// The example of a wallet extension, loaded in Chromium: its provider in a page of another site.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { budget } from '../../examples/extension/budget.js';
import { clientOf } from '../../examples/extension/client.js';
import { sessionOf } from '../../examples/extension/session.js';
import { startBrowser } from './lib/browser.mjs';
import { serveChain } from './lib/chain-server.mjs';
import { servePackage } from './lib/pages.mjs';
import { LIMIT, until } from './lib/wait.mjs';

const PACKAGE = fileURLToPath(new URL('..', import.meta.url));
const EXAMPLE = fileURLToPath(new URL('../../examples/extension', import.meta.url));

let folder;
let served;
let site;
let browser;
/** What exchanges with the node wait for. */
let held;

/** The id that Chromium gives to an unpacked extension: the hash of its path, in the letters a to p. */
const idOf = (path) => [...createHash('sha256').update(path).digest('hex').slice(0, 32)].map((digit) => String.fromCharCode(97 + parseInt(digit, 16))).join('');

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'rootlight-extension-'));
  cpSync(EXAMPLE, folder, { recursive: true });
  const isPublished = (path) => !/\/(node_modules|test|wasm|scripts)(\/|$)/.test(path.slice(PACKAGE.length - 1));
  cpSync(PACKAGE, join(folder, 'rootlight'), { recursive: true, filter: isPublished });
  cpSync(join(PACKAGE, 'node_modules/tldts/dist/index.esm.min.js'), join(folder, 'tldts.js'));
  // A chain with a block 0 of its own, as `rootlight dev` makes it.
  served = await serveChain(10, () => held);
  site = await servePackage();
  const flags = [`--load-extension=${folder}`, `--disable-extensions-except=${folder}`, '--disable-features=DisableLoadExtensionCommandLineSwitch'];
  browser = await startBrowser({ flags });
});

after(async () => {
  await browser.close();
  await site.close();
  await served.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Saves the settings as a user does. */
const save = async (node) => {
  document.getElementById('network').value = 'regtest';
  document.getElementById('upstreams').value = node;
  const saved = document.getElementById('saved');
  saved.value = '';
  document.querySelector('button').click();
  while (!saved.value) await new Promise((resolve) => setTimeout(resolve, 20));
  return saved.value;
};

/** In a page: finds the extension's provider with a discovery library. */
const find = async () => {
  const { createStore } = await import('/node_modules/mipd/dist/esm/index.js');
  globalThis.store = createStore();
  const { until } = await import('/test/lib/wait.mjs');
  await until(() => globalThis.store.getProviders().length > 0, 'the announcement');
  const detail = globalThis.store.findProvider({ rdns: 'org.example.rootlight-extension' });
  globalThis.provider = detail?.provider;
  return detail?.info.name;
};

const ask = async (method, params) =>
  globalThis.provider.request({ method, params }).then((result) => ({ result }), ({ code, message, data }) => ({ code, message, data }));

test('a page finds the provider, gets proven answers and events, and signs with the user\'s wallet', LIMIT, async () => {
  await browser.open(`${site.url}/test/page.html`);
  assert.equal(await browser.run(find), 'Rootlight (verified)');
  assert.equal((await browser.run(ask, 'eth_blockNumber', [])).code, 4900, 'without settings');

  await browser.open(`chrome-extension://${idOf(folder)}/options.html`);
  const state = (words) => until(() => browser.run(async (words) => document.getElementById('state').value.startsWith(words), words), words);
  await state('Not set up');
  for (const [wrong, words] of [[new URL(served.url).host, /^Not saved: 127.* is not an address/], ['ftp://node', /^Not saved: ftp/], [' ', /name a node/]]) {
    assert.match(await browser.run(save, wrong), words);
  }
  assert.equal(await browser.run(async () => (await chrome.storage.local.get('settings')).settings === undefined), true);
  assert.equal(await browser.run(save, served.url), 'Saved.');
  await state('Ready: the chain is checked up to block 10.');
  // The form has no field for this: the test need not wait for the usual ten seconds.
  await browser.run(async () => {
    const { settings } = await chrome.storage.local.get('settings');
    await chrome.storage.local.set({ settings: { ...settings, pollSeconds: 0.2 } });
  });
  await browser.open(`${site.url}/test/page.html`);
  await browser.run(find);
  const [account] = await served.ask('eth_accounts');
  const balance = await served.ask('eth_getBalance', account, 'latest');
  assert.deepEqual(await browser.run(ask, 'eth_getBalance', [account, 'latest']), { result: balance });
  assert.equal((await browser.run(ask, 'rootlight_verification', [])).result.level, 'verified');

  // Methods that show the user's nodes, and filters of nobody.
  for (const method of ['rootlight_upstreams', 'net_peerList', 'sco_peerList']) assert.equal((await browser.run(ask, method, [])).code, 4200, method);
  assert.equal((await browser.run(ask, 'eth_getFilterChanges', ['0x1'])).code, -32000);

  await browser.run(async () => {
    globalThis.heads = [];
    globalThis.told = [];
    globalThis.provider.on('message', ({ data }) => globalThis.heads.push(data.result.number));
    for (const event of ['connect', 'disconnect']) globalThis.provider.on(event, ({ chainId, code }) => globalThis.told.push([event, chainId ?? code]));
  });
  assert.ok((await browser.run(ask, 'eth_subscribe', ['newHeads'])).result);
  await served.ask('evm_mine');
  await until(async () => (await browser.run(async () => globalThis.heads)).includes('0xb'), 'a new head in the page');

  assert.deepEqual(await browser.run(ask, 'eth_accounts', []), { result: [] });
  for (const method of ['eth_requestAccounts', ...SIGNING]) {
    // Of the errors of `getSigner` ethers keeps the code and the data; it knows these words.
    const message = `the method ${method} does not exist/is not available: this page has no wallet`;
    assert.deepEqual(await browser.run(ask, method, [{}]), { code: 4100, message, data: { message } });
  }
  assert.equal((await browser.run(ask, 'wallet_getPermissions', [])).code, 4200);
  const switched = (chainId) => browser.run(ask, 'wallet_switchEthereumChain', [{ chainId }]);
  assert.deepEqual(await switched('0x21'), { result: null });
  assert.deepEqual([(await switched('0x1')).code, (await switched('main')).code], [4902, -32602]);
  await browser.run(async () => {
    globalThis.chain = '0x1';
    globalThis.sent = [];
    globalThis.accounts = [];
    globalThis.ethereum = {
      on: (event, listener) => (globalThis.select = event === 'accountsChanged' ? listener : globalThis.select),
      async request({ method, params }) {
        if (method === 'eth_chainId') return globalThis.chain;
        globalThis.sent.push([method, params]);
        return `${method} of the wallet`;
      },
    };
    globalThis.provider.on('accountsChanged', (accounts) => globalThis.accounts.push(accounts));
  });
  for (const method of SIGNING) assert.equal((await browser.run(ask, method, [{}])).code, 4901, method);
  assert.equal((await switched('0x1')).code, 4902);
  assert.deepEqual(await browser.run(async () => globalThis.sent), []);
  assert.deepEqual(await switched('0x21'), { result: 'wallet_switchEthereumChain of the wallet' });
  await browser.run(async () => {
    globalThis.chain = '0x21';
    globalThis.sent = [];
    globalThis.select(['0x12']);
  });
  assert.deepEqual(await browser.run(async () => globalThis.accounts), [['0x12']]);
  for (const method of ['eth_sendTransaction', 'wallet_sendCalls']) {
    assert.deepEqual(await browser.run(ask, method, [{ from: '0x12' }]), { result: `${method} of the wallet` });
    assert.equal((await browser.run(ask, method, [{ chainId: '0x1' }])).code, 4901);
  }
  const sent = [{ from: '0x12', chainId: '0x21' }];
  assert.deepEqual(await browser.run(async () => globalThis.sent), [['eth_sendTransaction', sent], ['wallet_sendCalls', sent]]);
});

/** Methods that make a wallet sign or send. */
const SIGNING = ['eth_sendTransaction', 'personal_sign', 'eth_signTypedData_v4', 'wallet_sendTransaction', 'wallet_sendCalls', 'personal_sendTransaction'];

test('a request whose parameters JSON cannot write is refused', LIMIT, async () => {
  const refused = await browser.run(async () => {
    const codes = [];
    for (const params of [[1n], [() => {}]]) codes.push(await globalThis.provider.request({ method: 'eth_getBalance', params }).catch(({ code }) => code));
    return codes;
  });
  assert.deepEqual(refused, [-32600, -32600]);
});

test('a page is told when the worker with its subscriptions has ended, and when it answers again', LIMIT, async () => {
  const told = () => browser.run(async () => globalThis.told);
  assert.deepEqual(await told(), []);
  assert.equal((await browser.run(ask, 'eth_chainId', [])).result, '0x21');
  // New settings end all connections.
  const options = await browser.tab();
  await options.open(`chrome-extension://${idOf(folder)}/options.html`);
  await options.run(save, served.url);
  await until(async () => (await told()).length > 0, 'disconnect');
  assert.equal((await browser.run(ask, 'eth_blockNumber', [])).result, '0xb');
  await until(async () => (await told()).length > 1, 'connect');
  assert.deepEqual(await told(), [['disconnect', 4900], ['connect', '0x21']]);
  // The page has no subscription any more: nothing of it ends with the worker.
  await options.run(save, served.url);
  await browser.run(ask, 'eth_blockNumber', []);
  assert.equal((await told()).length, 2);
});

test('a page that asks for too much at a time is refused, and its later requests are answered', LIMIT, async () => {
  const flood = async () => {
    globalThis.refused = 0;
    const ask = () => globalThis.provider.request({ method: 'eth_getBalance', params: [`0x${'12'.repeat(20)}`, 'latest'] });
    const code = (error) => ((globalThis.refused += 1), error.code);
    globalThis.codes = Promise.all(Array.from({ length: 400 }, () => ask().then(() => 0, code)));
  };
  // The node answers when requests were refused.
  let go;
  held = new Promise((resolve) => (go = resolve));
  await browser.run(flood);
  await until(() => browser.run(async () => globalThis.refused > 0), 'a refused request');
  held = undefined;
  go();
  assert.deepEqual(await browser.run(async () => [...new Set(await globalThis.codes)].sort()), [-32005, 0]);
  await until(async () => (await browser.run(ask, 'eth_chainId', [])).result === '0x21', 'an answer');
});

test('pages have no way to the extension besides its provider', LIMIT, async () => {
  const found = await browser.run(async (id) => {
    const reached = await fetch(`chrome-extension://${id}/options.html`).then(() => true, () => false);
    return [typeof globalThis.chrome?.storage, typeof globalThis.chrome?.runtime?.connect, reached];
  }, idOf(folder));
  assert.deepEqual(found, ['undefined', 'undefined', false]);
});

test('a page is told when the nodes of the extension do not answer, and when they do again', LIMIT, async () => {
  const told = (count) => until(() => browser.run(async (count) => globalThis.told.length >= count && globalThis.told, count), `${count} events`);
  await browser.run(ask, 'eth_chainId', []);
  await browser.run(async () => void (globalThis.told.length = 0));
  held = [502, {}];
  assert.deepEqual(await told(1), [['disconnect', 1013]]);
  // The words are for the extension's own page.
  const options = await browser.tab();
  await options.open(`chrome-extension://${idOf(folder)}/options.html`);
  await until(() => options.run(async () => document.getElementById('failure').value.includes('502')), 'the words of the failure');
  assert.equal((await browser.run(ask, 'rootlight_syncStatus', [])).result.fault, 'a node of the extension has failed');
  assert.equal((await browser.run(ask, 'eth_blockNumber', [])).result, '0xb');
  held = undefined;
  assert.deepEqual(await told(2), [['disconnect', 1013], ['connect', '0x21']]);
});

test('a page of an extension that was updated gets an error, and hangs no more', LIMIT, async () => {
  const options = await browser.tab();
  await options.open(`chrome-extension://${idOf(folder)}/options.html`);
  // The node is silent.
  held = new Promise(() => {});
  await browser.run(async () => {
    const asked = globalThis.provider.request({ method: 'eth_getTransactionReceipt', params: [`0x${'34'.repeat(32)}`] });
    globalThis.pending = asked.catch(({ code }) => code);
  });
  await options.run(async () => void setTimeout(() => chrome.runtime.reload(), 50));
  assert.equal(await browser.run(async () => globalThis.pending), 4900);
  await until(async () => (await browser.run(ask, 'eth_chainId', [])).code === 4900, 'an error');
  held = undefined;
});

test('settings that change while a client opens leave one client', async () => {
  const opened = [];
  const client = clientOf(() => new Promise((resolve, reject) => opened.push({ resolve, reject })));
  const fake = () => {
    const made = { closed: 0, on: (event, listener) => (made.tell = listener), close: () => (made.closed += 1) };
    return made;
  };
  const [former, current] = [fake(), fake()];
  const first = client.provider();
  client.end();
  const second = client.provider();
  assert.equal(client.provider(), second);
  assert.equal(opened.length, 2);
  opened[1].resolve(current);
  opened[0].resolve(former);
  await Promise.all([first, second]);
  assert.deepEqual([former.closed, current.closed], [1, 0]);
  former.tell({ code: 4900 });
  assert.equal(client.provider(), second);
  // A former one that fails does not take the place of the current one either.
  current.tell({ code: 4900 });
  const third = client.provider();
  client.end();
  const fourth = client.provider();
  opened[2].reject(new Error('no node'));
  await third.catch(() => {});
  assert.equal(client.provider(), fourth);
  opened[3].reject(new Error('no node'));
  await fourth.catch(() => {});
  assert.notEqual(client.provider(), fourth);
});

test('a budget allows a burst, a rate and a number of requests in progress', () => {
  let time = 0;
  const limit = budget(() => time);
  const enter = () => limit.enter();
  const started = () => {
    let count = 0;
    while (enter()) count += 1;
    for (let left = count; left > 0; left -= 1) limit.leave();
    return count;
  };
  assert.equal(started(), 32, 'in progress');
  let burst = 32;
  for (let round = started(); round > 0; round = started()) burst += round;
  assert.equal(burst, 200);
  time += 1_000;
  assert.equal(started(), 32);
  assert.equal(started(), 18);
  assert.equal(started(), 0);
  assert.ok(limit.isIdle());
});

test('a page has filters and subscriptions of its own only, and they end with it', async () => {
  const calls = [];
  let next = 0;
  const client = { request: async ({ method, params }) => (calls.push([method, ...(params ?? [])]), /^eth_(new|subscribe)/.test(method) ? `0x${(next += 1)}` : true) };
  const page = () => {
    const posts = [];
    const session = sessionOf({ postMessage: (message) => posts.push(message), disconnect() {} }, async () => client, { enter: () => true, leave() {} });
    const ask = async (method, ...params) => {
      await session.take({ id: posts.length, method, params });
      return posts.at(-1);
    };
    return { session, posts, ask };
  };
  const [first, second] = [page(), page()];
  const { result: id } = await first.ask('eth_subscribe', 'newHeads');
  const { result: filter } = await first.ask('eth_newBlockFilter');
  for (const method of ['eth_unsubscribe', 'eth_getFilterChanges', 'eth_uninstallFilter']) {
    assert.equal((await second.ask(method, id)).error.code, -32000, method);
  }
  const event = { type: 'eth_subscription', data: { subscription: id, result: 1 } };
  for (const { session } of [first, second]) session.emit(event, client);
  assert.deepEqual([first.posts.at(-1), second.posts.some((post) => post.event)], [{ event }, false]);
  for (let more = 0; more < 14; more += 1) assert.ok((await first.ask('eth_newBlockFilter')).result);
  assert.equal((await first.ask('eth_newBlockFilter')).error.code, -32005);
  assert.equal((await first.ask('eth_uninstallFilter', filter)).result, true);
  assert.equal((await first.ask('eth_getLogs', { address: 'x'.repeat(300_000) })).error.code, -32005);
  calls.length = 0;
  first.session.end();
  assert.equal(calls.length, 15);
  assert.deepEqual(calls[0], ['eth_unsubscribe', id]);
});
