// The parts that the first screen does not need, as one file that is loaded after it: the sections below, pages with addresses of their own, and the
// chain in this tab.
import type { Session } from './chain/session.ts';
import { byId } from './dom.ts';
import { chainView } from './views/chain.ts';
import { explorerView } from './views/explorer.ts';
import { playgroundView } from './views/playground.ts';
import { proofView } from './views/proof.ts';
import { tamperView } from './views/tamper.ts';

export { experiment } from './chain/experiment.ts';
export { lab } from './chain/lab.ts';
export { tabSource } from './chain/tab.ts';
export { addressPage } from './pages/address.ts';
export { blockPage } from './pages/block.ts';
export { logsPage } from './pages/logs.ts';
export { tokenPage } from './pages/token.ts';
export { transactionPage } from './pages/transaction.ts';

/** The functions that show the sections that need the source's chain. */
const ofChain = (session: Session): (() => void)[] => [
  () => {
    const proof = proofView(byId('proof'), session);
    chainView(byId('chain'), session, proof.show);
  },
  () => explorerView(byId('explorer'), session),
];

/** The functions that show the sections of the page, in their order. Without a session these are the ones that need no source. */
export const sections = (session: Session | undefined): (() => void)[] => [
  ...(session ? ofChain(session) : []),
  () => tamperView(byId('liar'), session),
  () => playgroundView(byId('playground'), session),
];
