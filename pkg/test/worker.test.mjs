// Where a client runs: in a shared worker, a worker of its own, a service worker, or on the page's thread; in real pages.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { serveChain } from './lib/chain-server.mjs';
import { chromiumOnly } from './lib/browser.mjs';
import { inPage as inNewPage, openPage } from './lib/in-page.mjs';
import { lying } from './lib/lying.mjs';
import { LIMIT, pause, until } from './lib/wait.mjs';

const BLOCKS = 200;

let served;
let page;
/** Whether the node fails all exchanges. */
let down = false;
/** What the node does with exchanges over these paths. */
const paths = new Map();

before(async () => {
  served = await serveChain(BLOCKS, async ({ url }) => (down ? [502, {}] : paths.get(url)?.()), lying);
  page = await openPage();
});
after(async () => {
  await page.close();
  await served.close();
});

/** Loads the page, and runs some work with it. All tests use one browser. */
async function inPage(work) {
  await page.reload();
  return work(page.run, page.reload, page.tab);
}

/** Options with an address of its own for each test, since clients with the same options are shared. */
const options = (path, more = {}) => ({ ...served.options, upstream: `${served.url}${path}`, pollSeconds: 0.2, storage: null, ...more });

/** In a page: opens a client that records the new heads. */
const open = async (given) => {
  const { createProvider } = await import('/index.js');
  globalThis.provider = await createProvider(given);
  globalThis.heads = [];
  globalThis.provider.on('message', ({ data }) => globalThis.heads.push(data.result.number));
  await globalThis.provider.request({ method: 'eth_subscribe', params: ['newHeads'] });
  return Number(await globalThis.provider.request({ method: 'eth_blockNumber' }));
};
const heads = async () => globalThis.heads.map(Number);
const close = async () => globalThis.provider.close();

/** Mines a block and waits until a page was told about it. */
async function follows(run) {
  const number = Number(await served.ask('eth_blockNumber')) + 1;
  await served.ask('evm_mine');
  await until(async () => (await run(heads)).includes(number), `block ${number} in a page`);
}

test('tabs share one client, which lives until the last of them is closed', LIMIT, () =>
  inPage(async (first, reload, tab) => {
    const second = await tab();
    const head = Number(await served.ask('eth_blockNumber'));
    const cold = await served.during(async () => assert.equal(await first(open, options('/shared')), head));
    const beside = await served.during(async () => assert.equal(await second(open, options('/shared')), head));
    assert.ok(cold > BLOCKS && beside < 10, `${cold} requests for the first tab, ${beside} for the second`);
    await follows(second);
    await follows(first);
    // A tab that goes away closes nothing itself.
    await second.leave();
    await follows(first);
    await first(close);
    // The client asks five times in a second.
    await until(async () => (await served.during(() => pause(1_000))) === 0, 'the end of the requests after both tabs have left');
  }));

test('a tab that closes its provider does not end that of another tab', LIMIT, () =>
  inPage(async (first, reload, tab) => {
    const second = await tab();
    for (const run of [first, second]) await run(open, options('/both'));
    await first(close);
    await follows(second);
    await second(close);
  }));

test('clients with different options are not shared', LIMIT, () =>
  inPage(async (run) => {
    await run(open, options('/one'));
    const other = await served.during(() => run(open, options('/one', { minDepth: 1 })));
    assert.ok(other > BLOCKS, `${other} requests`);
  }));

test('a client runs in a worker of its own, and on the page\'s thread', LIMIT, () =>
  inPage(async (run, reload) => {
    for (const worker of ['dedicated', false, 'shared']) {
      assert.ok((await run(open, options('/', { worker }))) >= BLOCKS);
      await follows(run);
      await run(close);
      await reload();
    }
  }));

test('errors, levels and callbacks cross from the worker', LIMIT, () =>
  inPage(async (run) => {
    const work = async (given) => {
      const { createProvider } = await import('/index.js');
      const progress = [];
      const provider = await createProvider({ ...given, onProgress: (figures) => progress.push(figures) });
      const failure = (promise) => promise.then(() => undefined, ({ code, message, name }) => ({ code, message, name }));
      const unknown = await failure(provider.request({ method: 'eth_nothing' }));
      const absent = await provider.requestWithLevel({ method: 'eth_getTransactionByHash', params: [`0x${'ab'.repeat(32)}`] });
      const network = await failure(createProvider({ ...given, network: 'nonet' }));
      const upstream = await failure(createProvider({ ...given, upstream: 'http://[' }));
      const timeout = await failure(createProvider({ ...given, upstream: given.upstream.replace('/cross', '/silent'), timeout: 1 }));
      provider.close();
      const closed = await failure(provider.request({ method: 'eth_chainId' }));
      return { unknown, absent, network, upstream, timeout, closed, told: progress.length > 0 && progress.every(({ currentBlock }) => currentBlock >= 0) };
    };
    for (const worker of ['shared', 'dedicated']) {
      paths.set(`/silent-${worker}`, () => new Promise(() => {}));
      const found = await run(work, options(`/cross-${worker}`, { worker }));
      assert.deepEqual([found.unknown.code, found.network.code, found.timeout.code, found.closed.code], [-32601, -32600, 4900, 4900]);
      assert.deepEqual(found.absent, { result: null, level: 'unproven-absence' });
      assert.deepEqual([found.network.message, found.upstream.name], ["network: 'nonet' is not known: give mainnet, testnet, testnet2, devnet or regtest", 'TypeError']);
      assert.ok(found.told, 'progress');
    }
  }));

test('an upstream that lies is named by a client in a worker', LIMIT, () =>
  inPage(async (run) => {
    const work = async (given, accounts) => {
      const { createProvider } = await import('/index.js');
      const { until } = await import('/test/lib/wait.mjs');
      const provider = await createProvider(given);
      const told = [];
      provider.on('verification', (event) => told.push(event));
      const balances = [];
      for (const account of accounts) {
        balances.push(await provider.request({ method: 'eth_getBalance', params: [account, '0x5'] }));
        await until(() => told.length === balances.length, 'the event of an answer');
      }
      provider.close();
      return { balances, caught: told.flatMap(({ caught }) => caught) };
    };
    // The honest node asks for a pause first, so that the other one is asked before it, however fast each of them is.
    const pauses = [[429, { 'retry-after': '3600', 'access-control-expose-headers': 'retry-after' }]];
    paths.set('/lie', () => pauses.shift());
    const accounts = await served.ask('eth_accounts');
    const liar = `${served.url.replace('127.0.0.1', 'localhost')}/changed`;
    const { balances, caught } = await run(work, options('/', { upstream: [liar, `${served.url}/lie`] }), accounts);
    assert.deepEqual(balances, await Promise.all(accounts.map((account) => served.ask('eth_getBalance', account, '0x5'))));
    const lie = caught.find(({ upstream }) => upstream === new URL(liar).origin);
    assert.match(lie.method, /getProof|getWitness/);
    assert.ok(lie.rule.length > 0);
  }));

/** In a page: opens a client in a worker that ends when it is told to, and asks while that happens. */
const killed = async (given, kind) => {
  const { createProvider } = await import('/index.js');
  const { until } = await import('/test/lib/wait.mjs');
  const address = new URL('/test/lib/mortal-worker.js', location.href);
  let made;
  const worker = () => (made = kind === 'shared' ? new SharedWorker(address, { type: 'module', name: String(Math.random()) }) : new Worker(address, { type: 'module' }));
  const provider = await createProvider({ ...given, worker });
  const told = [];
  provider.on('disconnect', ({ code, message }) => told.push({ code, message }));
  const asked = provider.request({ method: 'eth_getBalance', params: [`0x${'77'.repeat(20)}`, '0x7'] });
  if (kind === 'terminated') made.terminate();
  else (made.port ?? made).postMessage('end');
  const pending = await asked.then(() => 'answered', ({ code }) => code);
  await until(() => told.length > 0, 'the event disconnect');
  const later = await provider.request({ method: 'eth_chainId' }).catch(({ code }) => code);
  const again = await createProvider({ ...given, worker });
  const head = Number(await again.request({ method: 'eth_blockNumber' }));
  again.close();
  return { pending, told, later, head };
};

test('the end of a worker is an error, and a new provider works', LIMIT, () =>
  inPage(async (run) => {
    for (const kind of ['terminated', 'dedicated', 'shared']) {
      const { pending, told, later, head } = await run(killed, options(`/${kind}`), kind);
      assert.ok(pending === 4900 || pending === 'answered', `${kind}: ${pending}`);
      assert.deepEqual(told, [{ code: 4900, message: 'the worker has ended; create a new provider' }], kind);
      assert.equal(later, 4900, kind);
      assert.ok(head >= BLOCKS, kind);
    }
  }));

/** In a page: opens a client with the default place, and returns what the console was told about it. */
const noticed = async (given, without) => {
  for (const name of without) delete globalThis[name];
  const told = [];
  const { info } = console;
  console.info = (...words) => told.push(words.join(' '));
  const { createProvider } = await import('/index.js');
  const provider = await createProvider(given);
  const head = Number(await provider.request({ method: 'eth_blockNumber' }));
  provider.close();
  console.info = info;
  return { head, told };
};

test('without shared workers a client runs in a worker of its own, and without workers on the page\'s thread, which is said once', LIMIT, () =>
  inPage(async (run, reload) => {
    const alone = await run(noticed, options('/'), ['SharedWorker']);
    assert.ok(alone.head >= BLOCKS);
    assert.deepEqual(alone.told, []);
    const none = await run(noticed, options('/'), ['SharedWorker', 'Worker']);
    assert.ok(none.head >= BLOCKS);
    assert.equal(none.told.length, 1);
    assert.match(none.told[0], /^rootlight: the client runs on the page's own thread/);
    assert.deepEqual((await run(noticed, options('/'), [])).told, []);
  }));

// The page has a browser of its own: Firefox lets such a page join a shared worker that runs already, which is not its own start.
test('a policy that forbids workers keeps the client on the page\'s thread, which is said', LIMIT, () =>
  inNewPage(async (run, reload) => {
    await reload('?no-workers');
    const { head, told } = await run(noticed, options('/policy'), []);
    assert.ok(head >= BLOCKS);
    assert.match(told.join(), /the worker did not start|cannot be started/);
    const refused = await run(async (given) => {
      const { createProvider } = await import('/index.js');
      return createProvider(given).then(() => 'opened', ({ message }) => message);
    }, options('/policy', { worker: 'dedicated' }));
    assert.match(refused, /the worker did not start|cannot be started/);
  }));

test('a worker has functions of the page called that are upstreams', LIMIT, () =>
  inPage(async (run) => {
    const work = async (given) => {
      const { createProvider, httpTransport } = await import('/index.js');
      const { until } = await import('/test/lib/wait.mjs');
      const made = [];
      const { Worker } = globalThis;
      globalThis.Worker = class extends Worker {
        constructor(...args) {
          super(...args);
          made.push(String(args[0]));
        }
      };
      const http = httpTransport(given.upstream);
      let listener;
      const asked = { good: 0, bad: 0 };
      const good = Object.assign((body) => ((asked.good += 1), http(body)), { heads: (call) => void (listener = call) });
      const bad = async () => {
        asked.bad += 1;
        throw Object.assign(new Error('not now'), { retryAfter: 3_600 });
      };
      const provider = await createProvider({ ...given, upstream: undefined, upstreams: [good, bad], pollSeconds: 3_600 });
      const heads = [];
      provider.on('message', ({ data }) => heads.push(Number(data.result.number)));
      await provider.request({ method: 'eth_subscribe', params: ['newHeads'] });
      const before = Number(await provider.request({ method: 'eth_blockNumber' }));
      await http('{"jsonrpc":"2.0","id":1,"method":"evm_mine"}');
      listener();
      await until(() => heads.includes(before + 1), 'the block that the upstream announced');
      const { result } = await provider.requestWithLevel({ method: 'rootlight_upstreams' }).catch(({ message }) => ({ result: message }));
      provider.close();
      return { made, asked, result };
    };
    const { made, asked, result } = await run(work, options('/functions'));
    assert.deepEqual(made.map((url) => new URL(url).pathname), ['/worker.js']);
    assert.ok(asked.good > 1 && asked.bad === 1, `${JSON.stringify(asked)}: the second upstream asks for an hour's pause`);
    assert.equal(result.length, 2, JSON.stringify(result));
  }));

test('objects of the caller keep the client on the page\'s thread, and forbid an explicit worker', LIMIT, () =>
  inPage(async (run) => {
    const work = async (given) => {
      const { createProvider, httpTransport } = await import('/index.js');
      const local = await createProvider({ ...given, storage: { get() {}, put() {} } });
      local.close();
      const attempt = (more) => createProvider({ ...given, ...more }).then(() => 'opened', ({ code, message }) => [code, message]);
      return [
        await attempt({ worker: 'shared', upstream: httpTransport(given.upstream) }),
        await attempt({ worker: 'dedicated', storage: { get() {}, put() {} } }),
        await attempt({ worker: 'elsewhere' }),
      ];
    };
    const [transport, store, name] = await run(work, options('/objects'));
    assert.deepEqual([transport[0], store[0], name[0]], [-32600, -32600, -32600]);
    assert.match(transport[1], /^worker: an upstream is a function, which tabs cannot share/);
    assert.match(store[1], /^worker: `storage` is an object of yours/);
    assert.match(name[1], /^worker: give 'shared'/);
  }));

test('a client in a service worker runs on its thread', LIMIT, () =>
  inPage(async (run) => {
    const work = async (given) => {
      const registered = await navigator.serviceWorker.register('/test/lib/service-worker.js', { type: 'module', scope: '/nowhere/' });
      const worker = registered.installing ?? registered.waiting ?? registered.active;
      while (worker.state !== 'activated') await new Promise((resolve) => setTimeout(resolve, 20));
      const { port1, port2 } = new MessageChannel();
      const answer = new Promise((resolve) => (port1.onmessage = ({ data }) => resolve(data)));
      worker.postMessage(given, [port2]);
      const found = await answer;
      await registered.unregister();
      return found;
    };
    const { head, workers, error } = await run(work, options('/service'));
    assert.deepEqual({ workers, error }, { workers: 'undefined', error: undefined });
    assert.ok(Number(head) >= BLOCKS);
  }));

test('a client goes on after its node was down', LIMIT, () =>
  inPage(async (run) => {
    await run(open, options('/away'));
    await follows(run);
    down = true;
    const resting = async () => (await globalThis.provider.request({ method: 'rootlight_upstreams' }))[0].resting;
    await until(async () => /HTTP status 502/.test(await run(resting)), 'a node that is left alone');
    assert.ok((await run(async () => Number(await globalThis.provider.request({ method: 'eth_blockNumber' })))) >= BLOCKS);
    down = false;
    await follows(run);
    await run(close);
  }));

test('a page is told when the network of its shared worker is gone, and goes on when it is back', { ...LIMIT, ...chromiumOnly }, () =>
  inPage(async (run, _, tab) => {
    const listening = async (given) => {
      const { createProvider } = await import('/index.js');
      globalThis.provider = await createProvider(given);
      globalThis.told = [];
      globalThis.heads = [];
      globalThis.provider.on('connect', ({ chainId }) => globalThis.told.push(chainId));
      globalThis.provider.on('disconnect', ({ code }) => globalThis.told.push(code));
      globalThis.provider.on('message', ({ data }) => globalThis.heads.push(data.result.number));
      await globalThis.provider.request({ method: 'eth_subscribe', params: ['newHeads'] });
    };
    const told = async (run, ...expected) => {
      await until(async () => (await run(async () => globalThis.told.length)) >= expected.length, String(expected));
      assert.deepEqual(await run(async () => globalThis.told), expected);
    };
    await run(listening, options('/network'));
    await told(run, '0x21');
    const workers = await page.sharedWorkers();
    assert.equal(workers.count, 1);
    await workers.setOffline(true);
    await told(run, '0x21', 1013);
    assert.ok((await run(async () => Number(await globalThis.provider.request({ method: 'eth_blockNumber' })))) >= BLOCKS, 'what is known is answered');
    // A page that joins the client now learns it too.
    const other = await tab();
    await other(listening, options('/network'));
    await told(other, 1013);
    await workers.setOffline(false);
    await told(run, '0x21', 1013, '0x21');
    await told(other, 1013, '0x21');
    await follows(run);
    await other(close);
    await run(close);
    await other.leave();
  }));

test('a client goes on at once when the browser is online again', { ...LIMIT, ...chromiumOnly }, () =>
  inPage(async (run) => {
    // The browser takes the network away from pages, not from workers.
    await run(open, options('/offline', { worker: false }));
    await page.setOffline(true);
    const resting = async () => (await globalThis.provider.request({ method: 'rootlight_upstreams' }))[0].restingMillis;
    const isLeftAlone = async () => (await run(resting)) > 0;
    await until(isLeftAlone, 'a node that is left alone');
    // From now on the clock of the page stands still: nothing but the browser's event ends the time for which the node is left alone.
    await run(async () => {
      const now = performance.now();
      performance.now = () => now;
    });
    await until(isLeftAlone, 'a node that is left alone for good');
    await served.ask('evm_mine');
    const number = Number(await served.ask('eth_blockNumber'));
    await page.setOffline(false);
    await until(async () => (await run(heads)).includes(number), `block ${number} in a page`);
    await run(close);
  }));
