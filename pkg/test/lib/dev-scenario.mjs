// Uses the development chain as a program does inside its own process, in Node.js and in a page. Throws if a check fails.
import { countedChecks, must } from './checks.mjs';
import { until } from './wait.mjs';

const word = (value) => BigInt(value).toString(16).padStart(64, '0');

/** Returns how many checks passed. */
export async function scenario({ createDevChain }, { bytecode, module }) {
  const chain = await createDevChain(module && { module });
  const ask = (method, ...params) => chain.request({ method, params });
  const selector = async (signature) => {
    const text = [...new TextEncoder().encode(signature)].map((b) => b.toString(16).padStart(2, '0')).join('');
    return (await ask('web3_sha3', `0x${text}`)).slice(0, 10);
  };
  const check = countedChecks();

  check((await ask('eth_chainId')) === '0x21', 'the chain id');
  const [from, to] = await ask('eth_accounts');
  check(BigInt(await ask('eth_getBalance', from, 'latest')) === 10n ** 22n, 'a funded account');

  // Deploy.
  const supply = 1000n;
  const constructor = `${word(0x40)}${word(supply)}${word(4)}${'54657374'.padEnd(64, '0')}`;
  const gas = await ask('eth_estimateGas', { from, data: bytecode + constructor });
  const deployed = await ask('eth_sendTransaction', { from, data: bytecode + constructor, gas });
  const receipt = await ask('eth_getTransactionReceipt', deployed);
  check(receipt.status === '0x1' && receipt.blockNumber === '0x1', 'the deployment');
  const token = receipt.contractAddress;

  // Call.
  const balanceOf = `${await selector('balanceOf(address)')}${word(from)}`;
  const balance = (at = 'latest') => ask('eth_call', { to: token, data: balanceOf }, at).then(BigInt);
  check((await balance()) === supply, 'a call');
  check((await ask('eth_call', { to: token, data: balanceOf }, '0x0')) === '0x', 'a call at an older block');

  // Snapshot, transfer, logs.
  const snapshot = await ask('evm_snapshot');
  const transfer = `${await selector('transfer(address,uint256)')}${word(to)}${word(300)}`;
  await ask('eth_sendTransaction', { from, to: token, data: transfer, gas: '0x30000' });
  check((await balance()) === supply - 300n, 'a transfer');
  const filter = { address: token, fromBlock: '0x0', toBlock: 'latest' };
  const logs = await ask('eth_getLogs', filter);
  check(logs.length === 2 && BigInt(logs[1].data) === 300n, 'logs');
  check(logs[1].topics[2] === `0x${word(to)}`, 'a topic');

  // Revert: the whole chain.
  check((await ask('evm_revert', snapshot)) === true, 'going back to a snapshot');
  check((await balance()) === supply && (await ask('eth_blockNumber')) === '0x1', 'the chain of the snapshot');
  check((await ask('eth_getLogs', filter)).length === 1, 'the logs of the snapshot');

  // A call that reverts, with the contract's data.
  const tooMuch = `${transfer.slice(0, 74)}${word(supply + 1n)}`;
  const error = await ask('eth_call', { from, to: token, data: tooMuch }).catch((reason) => reason);
  check(error instanceof Error && error.code === 3, 'a revert is an error');
  check(error.data === `${await selector('NotEnough(address,uint256,uint256)')}${word(from)}${word(supply)}${word(supply + 1n)}`, 'its data');

  // Proofs and traces of the same chain.
  const proof = await ask('eth_getProof', token, ['0x1'], 'latest');
  check(BigInt(proof.storageProof[0].value) === supply && proof.accountProof.length > 0, 'a proof');
  check((await ask('trace_transaction', deployed))[0].type === 'create', 'a trace');

  must(Object.isFrozen(chain), 'nobody changes a provider');
  chain.close();
  const after = await ask('eth_chainId').catch((reason) => reason);
  check(after.code === 4900, 'a closed chain answers nothing');
  return check.passed;
}

/** A chain that mines by the clock, and invalid options. */
export async function options({ createDevChain }) {
  const chain = await createDevChain({ blockTime: 1, accounts: 2, balance: 0.5, hardfork: 'iris300', genesis: undefined });
  const ask = (method, ...params) => chain.request({ method, params });
  const [first] = await ask('eth_accounts');
  must(BigInt(await ask('eth_getBalance', first, 'latest')) === 5n * 10n ** 17n, 'the balance');
  const told = [];
  chain.on('message', ({ data }) => told.push(data.result.number));
  await ask('eth_subscribe', 'newHeads');
  await until(() => told.length > 0, 'a block by the clock, and its notification');
  must(Number(told[0]) > 0 && Number(await ask('eth_blockNumber')) >= Number(told[0]), 'the block');
  const absent = await ask('eth_config').catch((reason) => reason);
  must(absent.code === -32601 && absent.message.includes('eth_config') && absent.message.includes('rootlight methods'), 'a method of the program');
  chain.close();
  const other = await createDevChain({ chainId: 99 });
  must((await other.request({ method: 'eth_chainId' })) === '0x63', 'the chain id');
  other.close();
  for (const [wrong, what] of [
    [{ blockTime: 'soon' }, 'blockTime'],
    [{ balance: 'much' }, 'balance'],
    [{ hardfork: 'london' }, 'hardfork'],
    [{ genesis: { alloc: 1 } }, 'genesis'],
    [{ accounts: 1e6 }, 'accounts'],
    [{ chainId: 110 }, 'chainId'],
    [{ chainId: 44, genesis: 'regtest' }, 'chainId'],
    [{ unknown: 1 }, 'options'],
  ]) {
    const error = await createDevChain(wrong).catch((reason) => reason);
    must(error.code === -32600 && error.message.startsWith(`${what}: `), `refusal of ${what}, got ${error}`);
  }
  return true;
}
