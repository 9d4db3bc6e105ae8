//! Clients that end and start again with what they stored. The stored coinbases of Bitcoin may be lost, damaged or of another
//! writer.

use std::{collections::BTreeMap, sync::Arc};

use data_encoding::BASE64;
use fastrand::Rng;

use super::{
    Scenario, client,
    mine::{Block, network},
};
use crate::{
    consensus::bitcoin::CoinbaseProofBuf,
    light::{
        BitcoinDates, Now,
        bitcoin::{BitcoinFollower, encode_coinbase_proofs},
    },
    types::B256,
};

/// Bytes before the list of the stored coinbases: their form, the length of the list and the height of its first block.
const PREFIX: usize = 9;

/// The fate of the stored coinbases.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Kept,
    Lost,
    /// A bit is changed, or the list has another height.
    Damaged,
    /// The stored coinbases are of other blocks.
    Planted,
}

/// Number of bytes that the coinbases take of those that a client stored; 0 if it stored none.
fn length(stored: &[u8]) -> usize {
    let Some(bytes) = stored.get(1..5).filter(|_| stored[0] == 3) else { return 0 };
    PREFIX + u32::from_le_bytes(bytes.try_into().unwrap()) as usize
}

/// Changes a bit of the coinbases, or the height of the first one. Without their length the chain would be lost too.
fn damage(random: &mut Rng, stored: &mut [u8], end: usize) {
    if random.u64(..100) < 30 {
        stored[5] = stored[5].wrapping_add(random.u8(1..9));
    } else {
        stored[random.usize(5..end)] ^= 1 << random.u64(..8);
    }
}

/// The bytes of coinbases that are all of one block, at the heights of `blocks`.
fn planted(random: &mut Rng, blocks: &[Block]) -> Vec<u8> {
    let of = random.choice(blocks).unwrap().coinbase_proof();
    let proof = of.shortened(blocks[0].height);
    let list: Vec<Option<&CoinbaseProofBuf>> = vec![Some(&proof); blocks.len()];
    let list = BASE64.decode(encode_coinbase_proofs(list.into_iter()).as_bytes()).unwrap();
    [&[3][..], &(list.len() as u32).to_le_bytes(), &blocks[0].height.to_le_bytes(), &list].concat()
}

impl Scenario<'_> {
    /// Ends the client and starts another one with what it stored, if it stored something.
    pub(super) fn restart(&mut self) {
        let (pages, record, bitcoin) = {
            let mut sync = self.client.sync_mut();
            let Some(record) = sync.window_record() else { return };
            (sync.export(), record, sync.bitcoin().unwrap().stored())
        };
        let before = self.held_coinbases();
        let (fate, bitcoin) = self.treated(bitcoin);
        let follower = BitcoinFollower::restore(network().bitcoin.unwrap(), &bitcoin, self.unix).unwrap();
        let count = pages.last().unwrap().index + 1;
        let page = |index| pages.iter().find(|page| page.index == index).map(|page| page.bytes.clone());
        self.client = client(&self.drawn);
        let mut sync = self.client.sync_mut();
        sync.follow_bitcoin(follower);
        sync.judge_windows_by(Arc::new(BitcoinDates::since(Now { unix: self.unix, millis: self.millis })));
        assert!(sync.resume_window(&record, self.unix));
        let restored = sync.restore(count, &mut |index| Ok(page(index)));
        drop(sync);
        if let Err(fault) = restored {
            self.fail(&format!("what the client stored is refused: {fault}"));
        }
        let held = self.held_coinbases();
        let proven = |(height, block): (&u32, &B256)| before.get(height) == Some(block);
        let is_whole = match fate {
            Fate::Kept => held == before,
            Fate::Lost => held.is_empty(),
            Fate::Damaged => held.iter().all(proven),
            // At most one planted coinbase is of the block that it is stored for.
            Fate::Planted => held.len() <= 1,
        };
        if !is_whole {
            self.fail(&format!("stored coinbases are {fate:?}: {} of {}", held.len(), before.len()));
        }
        self.known.forget(held);
        // The client begins with the tip that it stored.
        (self.restarted, self.looked_at) = (true, self.known.tip());
        self.tally.restarted += 1;
    }

    /// The stored bytes as the next run finds them.
    fn treated(&mut self, mut stored: Vec<u8>) -> (Fate, Vec<u8>) {
        let end = length(&stored);
        let random = &mut self.random;
        match random.u64(..10) {
            0 => (Fate::Lost, stored.split_off(end)),
            1..4 if end > 0 => {
                damage(random, &mut stored, end);
                (Fate::Damaged, stored)
            }
            4..7 => {
                let newest = super::shared().bitcoin.len() + self.grown;
                let planted = planted(random, &self.drawn.bitcoin[newest - 90..newest]);
                (Fate::Planted, [planted, stored.split_off(end)].concat())
            }
            _ => (Fate::Kept, stored),
        }
    }

    /// The judged coinbases that the client holds: the hashes of their blocks by height.
    fn held_coinbases(&self) -> BTreeMap<u32, B256> {
        let sync = self.client.sync();
        let follower = sync.bitcoin().unwrap();
        let (chain, missing) = (follower.chain(), follower.missing_coinbases());
        let judged = follower.judged_heights().filter(|height| !missing.contains(height));
        judged.filter_map(|height| Some((height, chain.at(height)?.hash))).collect()
    }
}
