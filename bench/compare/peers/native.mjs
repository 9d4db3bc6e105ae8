// The native light client, called over loopback.
import { Node } from '../node.mjs';

export async function open({ url, genesis, block, port }) {
  const flags = ['--network', 'regtest', '--checkpoint', `0:${genesis}`, '--upstream', url, '--http-port', `${port}`, '--silent'];
  const node = await Node.start([process.env.ROOTLIGHT, 'light', ...flags], port);
  const follow = async ({ number }) => {
    while (Number(await node.connection.call('eth_blockNumber')) < Number(number)) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  await follow(block);
  return {
    follow,
    call: (transaction) => node.connection.call('eth_call', transaction, 'latest'),
    close: () => node.stop(),
  };
}
