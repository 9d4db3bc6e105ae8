// The section that draws a merge-mining proof: of the chosen block, or of a block of the main network that is part of the page.
import type { Session } from '../chain/session.ts';
import { networkOf } from '../chain/networks.ts';
import { grouped, quantity } from '../bytes.ts';
import { drawn, el, fill } from '../dom.ts';
import { draw } from '../proof/draw.ts';
import mainnet from '../proof/mainnet.json';
import { type MiningProof, prove } from '../proof/mining.ts';
import { asOneTabStop } from '../tab-stop.ts';
import { reasonOf } from '../words.ts';

/** The section, as other sections use it. */
export interface ProofView {
  /** Draws the proof of a block. Unless a visitor `asked` for it, it does not replace the main network's block that a visitor has chosen. */
  show(number: number, asked: boolean): void;
}

/** Shows the section. */
export function proofView(root: HTMLElement, session: Session): ProofView {
  const body = el('div', { class: 'proof-body' });
  /** The number of the chosen block. */
  let chosen = 0;
  /** The number of the newest drawing; an earlier one (`mine`) that is still being made is not shown. */
  let turn = 0;
  /** Whether a visitor has chosen the block of the main network. */
  let isPinned = false;
  const own = el('button', { type: 'button', class: 'tab', 'aria-pressed': 'true', on: { click: () => void drawOwn() } }, 'This chain');
  const real = el('button', { type: 'button', class: 'tab', 'aria-pressed': 'false', on: { click: pin } }, 'Main network, block 9,000,000');
  const press = (which: HTMLElement) => [own, real].forEach((tab) => tab.setAttribute('aria-pressed', String(tab === which)));

  const nameOwn = () => {
    own.textContent = `This chain, block ${grouped(chosen)}`;
  };

  function pin(): void {
    isPinned = true;
    void drawReal();
  }

  async function drawOwn(): Promise<void> {
    isPinned = false;
    press(own);
    nameOwn();
    turn += 1;
    const mine = turn;
    if (chosen === 0) {
      fill(body, el('p', { class: 'note' }, 'Block 0 is where this chain begins: it is trusted, not mined. Choose a later block, or look at a block of the main network.'));
      return;
    }
    try {
      const number = quantity(chosen);
      const [block, rawHeader] = await Promise.all([session.block(number), session.request('rsk_getRawBlockHeaderByNumber', number)]);
      if (mine !== turn || !block) return;
      const proof = prove({
        number: chosen, hash: block.hash, rawHeader: String(rawHeader), coinbase: block.bitcoinMergedMiningCoinbaseTransaction,
        merkleProof: block.bitcoinMergedMiningMerkleProof, hashForMergedMining: block.hashForMergedMining,
      });
      await drawn();
      await show(proof, mine, networkOf(session.source.chainId)?.isMined ?? false);
    } catch (error) {
      if (mine === turn) fill(body, el('p', { class: 'note bad' }, `This block cannot be drawn: ${reasonOf(error)}.`));
    }
  }

  async function drawReal(): Promise<void> {
    press(real);
    turn += 1;
    await show(prove(mainnet), turn, true);
  }

  /** Draws a proof, and shows it unless another one was chosen meanwhile. */
  async function show(proof: MiningProof, mine: number, isMined: boolean): Promise<void> {
    const drawing = await draw(proof, isMined);
    if (mine !== turn) return;
    // A drawing that replaces another appears as a whole, so that the content below does not move. The first one appears stage by stage.
    const later = body.childElementCount > 0 ? [] : [...drawing.querySelectorAll<HTMLElement>('.drawing > li')].slice(1);
    for (const stage of later) stage.hidden = true;
    fill(body, drawing);
    for (const stage of later) {
      await drawn();
      stage.hidden = false;
    }
  }

  fill(root,
    el('div', { class: 'proof-head' },
      el('h3', { id: 'proof-title' }, 'Why this block counts'),
      asOneTabStop(el('div', { class: 'tabs', role: 'group', 'aria-label': 'Which block is drawn' }, own, real))),
    el('p', { class: 'description' }, 'Read from the top: the work, then step by step what that work vouches for. Every hash is computed again in this page.'),
    body);
  return {
    show(number, asked) {
      chosen = number;
      if (isPinned && !asked) nameOwn();
      // A new chain has no mined block yet, so that the block of the main network is shown first.
      else if (number === 0 && turn === 0) void drawReal();
      else void drawOwn();
    },
  };
}
