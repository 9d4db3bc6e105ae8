// The sections about the source's chain, and the development chain in this tab. The bundler makes one file of them, which main.ts loads while
// the light client starts.
import type { Session } from './chain/session.ts';
import { byId } from './dom.ts';
import { chainView } from './views/chain.ts';
import { explorerView } from './views/explorer.ts';
import { proofView } from './views/proof.ts';

export { experiment } from './chain/experiment.ts';
export { lab } from './chain/lab.ts';
export { tabSource } from './chain/tab.ts';

/** The functions that show the sections about the source's chain, from the top of the page down. */
export const sections = (session: Session): (() => void)[] => [
  () => {
    const proof = proofView(byId('proof'), session);
    chainView(byId('chain'), session, proof.show);
  },
  () => explorerView(byId('explorer'), session),
];
