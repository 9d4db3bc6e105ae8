// web3.js over the npm package's providers: reverts with their reasons, subscriptions, and transactions of a wallet.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { Web3 } from 'web3';
import { createDevChain } from '../../../pkg/dev.js';
import { createProvider } from '../../../pkg/index.js';
import { transportTo } from '../../../pkg/test/lib/chain-transport.mjs';
import { until } from '../../../pkg/test/lib/wait.mjs';

const token = JSON.parse(readFileSync(process.env.ROOTLIGHT_TOKEN, 'utf8'));
/** Blocks of Rootstock have no base fee, so that web3.js must be told the form of transactions. */
const LEGACY = { type: '0x0' };
const TO = '0x00000000000000000000000000000000000000aa';

/** The chain, and a light client of it whose wallet is the chain itself. */
let chain, light, running, account, address;

before(async () => {
  // The chain is in this process: no connection keeps it running.
  running = setInterval(() => {}, 1_000);
  chain = await createDevChain();
  const { eth } = new Web3(chain);
  [account] = await eth.getAccounts();
  const deployed = await new eth.Contract(token.abi).deploy({ data: token.bytecode, arguments: ['Provider', 50n] }).send({ ...LEGACY, from: account });
  address = deployed.options.address;
  const { hash } = await chain.request({ method: 'eth_getBlockByNumber', params: ['0x0', false] });
  const options = { network: 'regtest', checkpoint: { number: 0, hash }, upstreams: transportTo(chain), pollSeconds: 0.1 };
  light = await createProvider({ ...options, storage: null, signer: chain });
});

after(() => {
  light?.close();
  chain?.close();
  clearInterval(running);
});

/** Runs a test with each provider. */
const each = (name, work) => {
  test(`${name}: light client`, () => work(light));
  test(`${name}: development chain`, () => work(chain));
};

const contractOver = (provider) => {
  const { eth } = new Web3(provider);
  return { eth, contract: new eth.Contract(token.abi, address) };
};

each('web3.js names the error of a revert', async (provider) => {
  const { eth, contract } = contractOver(provider);
  const transfer = contract.methods.transfer(TO, 51n);
  await assert.rejects(transfer.call({ ...LEGACY, from: account }), ({ cause }) => {
    assert.equal(cause.errorName, 'NotEnough');
    assert.deepEqual([cause.errorArgs.balance, cause.errorArgs.wanted], [50n, 51n]);
    return true;
  });
  // web3.js decodes errors of calls only.
  const selector = eth.abi.encodeFunctionSignature('NotEnough(address,uint256,uint256)');
  await assert.rejects(transfer.estimateGas({ ...LEGACY, from: account }), ({ cause }) => cause.code === 3 && cause.data.startsWith(selector));
});

each('web3.js reads a balance and a contract', async (provider) => {
  const { eth, contract } = contractOver(provider);
  assert.ok((await eth.getBalance(account)) > 0n);
  assert.equal(await contract.methods.balanceOf(account).call(), 50n);
});

each('web3.js gets new blocks and events of a subscription', async (provider) => {
  const { eth, contract } = contractOver(provider);
  const [heads, logs] = [[], []];
  const blocks = await eth.subscribe('newBlockHeaders');
  blocks.on('data', ({ number }) => heads.push(number));
  const transfers = await eth.subscribe('logs', { address });
  transfers.on('data', ({ transactionHash }) => logs.push(transactionHash));
  const { transactionHash, blockNumber } = await contract.methods.transfer(TO, 0n).send({ ...LEGACY, from: account });
  await until(() => heads.includes(blockNumber) && logs.includes(transactionHash), 'the block and its event');
  await blocks.unsubscribe();
  await transfers.unsubscribe();
});
