// A chain on a block of another development chain, which shows its state with proofs.
import { countedChecks } from './checks.mjs';

/** A token whose balances are in the slots with the owners' addresses. Call data: recipient and amount, a word each. */
const CODE = '0x6020353354818110601a578190033355600035540160003555005b600080fd';
const TOKEN = '0x00000000000000000000000000000000000070ce';
/** An account of the network with many tokens. */
const WHALE = '0x000000000000000000000000000000000000ba1e';
const OTHER = '0x00000000000000000000000000000000000000aa';

const word = (value) => `0x${BigInt(value).toString(16).padStart(64, '0')}`;

/** Sends tokens to {@link OTHER}. */
const send = (ask, amount) =>
  ask('eth_sendTransaction', { from: WHALE, to: TOKEN, data: `${word(OTHER)}${word(amount).slice(2)}`, gas: '0x186a0', gasPrice: '0x1' });

/** Makes the network's token, sends 40 of it in block 3, and mines a few blocks above. */
export async function prepare(ask) {
  await ask('anvil_setCode', TOKEN, CODE);
  await ask('anvil_setStorageAt', TOKEN, WHALE, word(1_000));
  await ask('anvil_setBalance', WHALE, '0xde0b6b3a7640000');
  await ask('hardhat_mine', '0x2');
  await ask('anvil_impersonateAccount', WHALE);
  await send(ask, 40);
  await ask('hardhat_mine', '0x14');
}

/**
 * Uses forks of a prepared chain; returns how many checks passed.
 * @param {{createDevChain: Function}} module
 * @param {{url: string | Function, ask: Function}} network the chain, and what asks it
 */
export async function forkScenario({ createDevChain }, { url, ask: there }) {
  const check = countedChecks();
  const head = await there('eth_blockNumber');
  const chain = await createDevChain({ fork: { url }, accounts: 1, balance: 5 });
  const ask = (method, ...params) => chain.request({ method, params });
  const tokens = async (of, from = ask) => Number(await from('eth_getStorageAt', TOKEN, of, 'latest'));

  check((await ask('eth_chainId')) === (await there('eth_chainId')) && (await ask('eth_blockNumber')) === head, 'the chain and its height');
  check((await ask('web3_clientVersion')).endsWith('+fork'), 'the version names the fork');
  check((await tokens(WHALE)) === 960 && (await tokens(OTHER)) === 40, 'the state of the network');
  const [account] = await ask('eth_accounts');
  check(BigInt(await ask('eth_getBalance', account, 'latest')) === 5n * 10n ** 18n, 'the funded account');

  // Messages that are sent at once are answered in their order.
  await ask('anvil_impersonateAccount', WHALE);
  const [first, second] = await Promise.all([send(ask, 50), send(ask, 10)]);
  const receipts = await Promise.all([first, second].map((hash) => ask('eth_getTransactionReceipt', hash)));
  check(receipts.every(({ status }, index) => status === '0x1' && Number(receipts[index].blockNumber) === Number(head) + index + 1), 'two transfers in order');
  check((await tokens(WHALE)) === 900 && (await tokens(OTHER)) === 100, 'the transfers');
  check((await tokens(WHALE, there)) === 960 && (await there('eth_blockNumber')) === head, 'the network is as before');

  // Blocks below.
  const below = ({ totalDifficulty, ...block }) => JSON.stringify(block);
  const [here, original] = await Promise.all([ask, there].map((from) => from('eth_getBlockByNumber', '0x3', true)));
  check(below(here) === below(original), 'a block below the fork');
  const { hash } = original.transactions[0];
  const [receipt, shown] = await Promise.all([ask, there].map((from) => from('eth_getTransactionReceipt', hash)));
  check(JSON.stringify(receipt) === JSON.stringify(shown), 'a receipt below the fork');
  check(Array.isArray(await ask('eth_getLogs', { fromBlock: '0x1', toBlock: 'latest' })), 'logs');
  check((await ask('eth_getTransactionByHash', word(7))) === null, 'a transaction that is nowhere');

  // Other blocks, time and snapshots.
  const saved = await ask('evm_snapshot');
  await ask('evm_increaseTime', 86_400);
  await ask('evm_mine');
  check((await ask('evm_revert', saved)) === true && (await tokens(OTHER)) === 100, 'a snapshot');
  await ask('hardhat_reset', { forking: { blockNumber: 2 } });
  check((await ask('eth_blockNumber')) === '0x2' && (await tokens(OTHER)) === 0, 'a reset to a block before the transfer');
  await ask('anvil_reset', { forking: {} });
  check((await ask('eth_blockNumber')) === head && (await tokens(OTHER)) === 40, 'a reset to the head');
  const other = await ask('hardhat_reset', { forking: { jsonRpcUrl: 'http://127.0.0.1:9/' } }).catch((error) => error);
  check(other.code === -32002 && other.message.includes('jsonRpcUrl'), 'no other upstream is asked');
  const beyond = await ask('anvil_reset', { forking: { blockNumber: '0x999' } }).catch((error) => error);
  check(beyond.code === -32002 && beyond.message.includes('no block 2457') && (await ask('eth_blockNumber')) === head, 'a block that is not there');
  chain.close();

  // A block with its hash is trusted; one at a height is linked.
  const { hash: trusted } = await there('eth_getBlockByNumber', '0xa', false);
  for (const block of [10, { number: 10, hash: trusted }]) {
    const early = await createDevChain({ fork: { url, block, chainId: 77 } });
    const latest = await early.request({ method: 'eth_getBlockByNumber', params: ['latest', false] });
    check(latest.hash === trusted && (await early.request({ method: 'eth_chainId' })) === '0x4d', 'the block at a height, and another chain id');
    early.close();
  }
  for (const [fork, what] of [
    [{ url, block: { number: 10, hash: word(7) } }, 'no block with the hash'],
    [{ url, block: 5_000 }, 'no block 5000'],
    [{ url, block: 'soon' }, 'fork: block: give a number'],
    [{ url, unproven: 'quorum:2' }, 'needs 2 upstreams'],
    [{ url, chainId: 110 }, 'chainId: give a number from 1 to 109'],
    [{}, 'fork: url: give the address'],
    [{ url, urls: [] }, 'unknown field `urls`'],
  ]) {
    const error = await createDevChain({ fork }).catch((reason) => reason);
    check(error.message?.includes(what), `refusal with "${what}", got ${error}`);
  }
  const both = await createDevChain({ fork: { url }, hardfork: 'iris300' }).catch((reason) => reason);
  check(both.message?.includes('hardfork'), 'a fork has its network\'s rules');
  return check.passed;
}

/** The number of checks of {@link forkScenario}. */
export const CHECKS = 26;

/** Uses a fork of a node that proves no state. `broken` makes it answer nothing, or answer again. */
export async function stockNode({ createDevChain }, { transport, broken }) {
  const check = countedChecks();
  const refused = await createDevChain({ fork: { url: transport } }).catch((reason) => reason);
  check(refused.message?.includes("unproven: 'trust'"), `a node without proofs is refused, got ${refused}`);
  const chain = await createDevChain({ fork: { url: transport, unproven: 'trust' } });
  const ask = (method, ...params) => chain.request({ method, params });
  check((await ask('web3_clientVersion')).endsWith('+unproven-fork'), 'the version says so');
  const head = await ask('eth_blockNumber');
  await ask('anvil_impersonateAccount', WHALE);
  broken(true);
  const error = await send(ask, 60).catch((reason) => reason);
  check(error.code === -32002 && error.message.includes('nobody is there'), `an upstream that is gone, got ${error}`);
  check((await ask('eth_blockNumber')) === head, 'nothing has changed');
  broken(false);
  await send(ask, 60);
  check(Number(await ask('eth_getStorageAt', TOKEN, OTHER, 'latest')) === 100, 'it is there again');
  chain.close();
  return check.passed;
}
