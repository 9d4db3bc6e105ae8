// @ethereumjs/evm with the same token and holders in its own memory: the interpreter alone, without proofs or JSON.
import { createEVM } from '@ethereumjs/evm';
import { Account, bytesToHex, createAddressFromString, hexToBytes } from '@ethereumjs/util';

const evm = await createEVM();
let caller;
let token;

/** A call as the interpreter takes it; one without `to` runs its data. */
const prepared = ({ to, data }) => ({ to: to && token, caller, data: hexToBytes(data), gasLimit: 10_000_000n });

async function run(fields) {
  const { execResult, createdAddress } = await evm.runCall({ gasLimit: 10_000_000n, ...fields });
  if (execResult.exceptionError) throw new Error(execResult.exceptionError.error);
  return { returned: execResult.returnValue, createdAddress };
}

const orders = {
  async open({ creation, transfers, calls }) {
    caller = createAddressFromString(transfers[0].from);
    await evm.stateManager.putAccount(caller, new Account(0n, 10n ** 18n));
    token = (await run({ caller, data: hexToBytes(creation) })).createdAddress;
    for (const transfer of transfers) await run(prepared(transfer));
    for (const { call, result } of calls) {
      const { returned } = await run(prepared(call));
      if (bytesToHex(returned) !== result) throw new Error(`${bytesToHex(returned)} instead of ${result}`);
    }
    return ['the interpreter'];
  },
  async time({ calls, count }) {
    const ready = calls.map(({ call }) => prepared(call));
    const began = performance.now();
    for (let at = 0; at < count; at += 1) await evm.runCall(ready[at % ready.length]);
    return performance.now() - began;
  },
  close: () => process.exit(),
};

process.on('message', async ({ order, what }) => {
  try {
    process.send({ value: await orders[order](what) });
  } catch (error) {
    process.send({ error: String(error?.stack ?? error) });
  }
});
