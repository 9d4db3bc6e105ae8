//! The Bitcoin headers the Bridge holds.

use alloc::format;
use alloc::vec::Vec;

use alloy_primitives::{hex, B256, U256};

use super::super::abi::{bytes_result, int_result, Arg};
use super::super::cell_slot;
use super::checkpoints::lowest_height;
use super::constants::Bitcoin;
use super::session::{hashed_slot, Bridge, Done};
use super::Refusal;
use crate::consensus::bitcoin::{double_sha256, hash_pair, reversed, BitcoinHeader};
use crate::consensus::Rule;
use crate::types::rlp::{self, Reader};

/// Bytes of a Bitcoin header.
pub(super) const HEADER: usize = 80;
/// Depth from which confirmations are not counted.
const MAX_DEPTH: i64 = 4_320;
/// Cell of the best header.
const HEAD: &str = "blockStoreChainHead";
/// Genesis of Bitcoin's regression test network.
const REGTEST_GENESIS: [u8; HEADER] = hex!(
    "0100000000000000000000000000000000000000000000000000000000000000000000003ba3edfd7a7b12b27ac72c3e"
    "67768f617fc81bc3888a51323a9fb8aa4b1e5e4adae5494dffff7f2002000000"
);
/// Its work.
const REGTEST_WORK: u64 = 2;

/// A header in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    /// Work up to it.
    pub(super) work: U256,
    /// Bitcoin height.
    pub(super) height: i64,
    /// The header.
    pub(super) header: [u8; HEADER],
}

impl Stored {
    /// Work in 32 bytes (12 before RSKIP-454), height in 4, header.
    fn decode(cell: &[u8]) -> Option<Self> {
        let (rest, header) = cell.split_last_chunk::<HEADER>()?;
        let (work, height) = rest.split_last_chunk::<4>()?;
        let work = U256::try_from_be_slice(work)?;
        Some(Self { work, height: i64::from(i32::from_be_bytes(*height)), header: *header })
    }

    fn encode(&self, rules: crate::consensus::RuleSet) -> Vec<u8> {
        let skip = if rules.has(Rule::Rskip454) { 0 } else { 20 };
        let mut out: Vec<u8> = self.work.to_be_bytes::<32>().into_iter().skip(skip).collect();
        out.extend_from_slice(&(self.height as i32).to_be_bytes());
        out.extend_from_slice(&self.header);
        out
    }

    /// Hash in display order, by which it is stored.
    pub(super) fn hash(&self) -> B256 {
        reversed(&double_sha256(&self.header))
    }

    /// Hash of the header before it, in display order.
    pub(super) fn previous(&self) -> B256 {
        BitcoinHeader::first_of(&self.header).map_or(B256::ZERO, |header| reversed(&header.previous()))
    }

    /// Root of the transactions, in Bitcoin's own order.
    fn root(&self) -> B256 {
        BitcoinHeader::first_of(&self.header).map_or(B256::ZERO, |header| header.merkle_root())
    }
}

impl Bridge<'_> {
    /// The best header. The first use of the store sets it up, at once except for the index.
    pub(super) fn btc_head(&mut self) -> Result<Stored, Refusal> {
        let cell = self.stored(cell_slot(HEAD));
        if !cell.is_empty() {
            return Stored::decode(&cell).ok_or(Refusal::Failed);
        }
        if self.constants.bitcoin != Bitcoin::Regtest {
            return Err(Refusal::NotSimulated("initialisation of the Bitcoin store"));
        }
        let genesis = Stored { work: U256::from(REGTEST_WORK), height: 0, header: REGTEST_GENESIS };
        self.put(&genesis);
        self.set_head(&genesis);
        Ok(genesis)
    }

    /// A header by its hash in display order.
    pub(super) fn btc_block(&mut self, hash: &B256) -> Option<Stored> {
        Stored::decode(&self.stored((*hash).into()))
    }

    /// Stores a header.
    pub(super) fn put(&mut self, block: &Stored) {
        let bytes = block.encode(self.call.rules);
        self.write_now(block.hash().into(), bytes);
    }

    /// Makes a stored header the best one.
    pub(super) fn set_head(&mut self, block: &Stored) {
        let bytes = block.encode(self.call.rules);
        self.write_now(cell_slot(HEAD), bytes);
        self.index(block);
    }

    /// Notes a header as the one of its height (RSKIP-199).
    pub(super) fn index(&mut self, block: &Stored) {
        if self.has(Rule::Rskip199) {
            let mut bytes = Vec::new();
            rlp::put_str(&mut bytes, block.hash().as_slice());
            self.save(index_slot(block.height), bytes);
        }
    }

    /// The header of a height on the best chain: `Err` above the head and too far below the index.
    fn at_height(&mut self, height: i64) -> Result<Result<Option<Stored>, TooFar>, Refusal> {
        let head = self.btc_head()?;
        let (start, depth) = (self.constants.index_height, self.constants.index_depth);
        let below_head = head.height.saturating_sub(depth);
        let lowest = if head.height.saturating_sub(start) > depth { start } else { below_head };
        let indexed = self.has(Rule::Rskip199);
        if height > head.height || (indexed && height < lowest) {
            return Ok(Err(TooFar));
        }
        if indexed {
            let cell = self.stored(index_slot(height));
            let hash = Reader::new(&cell).next_str("hash").ok().and_then(|hash| B256::try_from(hash).ok());
            if let Some(block) = hash.and_then(|hash| self.btc_block(&hash)) {
                return Ok(Ok(Some(block)));
            }
        }
        Ok(Ok(self.at_depth(head, height)))
    }

    /// Height of the first header held.
    fn lowest_height(&mut self) -> Result<i64, Refusal> {
        let created = self.active_federation().created;
        lowest_height(self.constants.bitcoin, created)
    }

    /// Walks down from the head.
    fn at_depth(&mut self, head: Stored, height: i64) -> Option<Stored> {
        let mut block = head;
        while block.height > height {
            block = self.below(&block)?;
        }
        Some(block)
    }

    /// The header before one. Cells need not come from this contract (overrides, changed states): one that is not
    /// exactly a height lower is none, or a header that names itself would be walked for ever.
    pub(super) fn below(&mut self, block: &Stored) -> Option<Stored> {
        let height = block.height.saturating_sub(1);
        self.btc_block(&block.previous()).filter(|below| below.height == height)
    }

    /// The witness root that was registered for a block (RSKIP-143).
    pub(super) fn coinbase_root(&mut self, hash: &[u8]) -> Option<B256> {
        let name = format!("coinbaseInformation-{}", hex::encode(hash));
        let cell = self.hashed(&name);
        B256::try_from(Reader::list(&cell, "coinbase").ok()?.next_str("root").ok()?).ok()
    }
}

/// A height that the store does not look for.
struct TooFar;

fn index_slot(height: i64) -> U256 {
    hashed_slot(&format!("btcBlockHeight-{height}"))
}

fn hash_arg(args: &[Arg<'_>], index: usize) -> B256 {
    args.get(index).and_then(|arg| B256::try_from(arg.bytes()).ok()).unwrap_or_default()
}

fn header(block: Option<Stored>) -> Done {
    Ok(Some(match block {
        Some(block) => bytes_result(&block.header),
        None => bytes_result(&[]),
    }))
}

pub(super) fn best_height(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> Done {
    Ok(Some(int_result(bridge.btc_head()?.height)))
}

pub(super) fn best_header(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> Done {
    let head = bridge.btc_head()?;
    header(Some(head))
}

pub(super) fn header_by_hash(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> Done {
    bridge.btc_head()?;
    header(bridge.btc_block(&hash_arg(args, 0)))
}

pub(super) fn parent_header(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> Done {
    bridge.btc_head()?;
    let block = bridge.btc_block(&hash_arg(args, 0));
    header(block.and_then(|block| bridge.btc_block(&block.previous())))
}

pub(super) fn header_by_height(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> Done {
    let height = i64::from(args.first().map_or(-1, Arg::int));
    match bridge.at_height(height)? {
        Ok(block) => header(block),
        Err(TooFar) => header(None),
    }
}

/// Hash of a header by its depth, down to the first one held: genesis on regtest, a checkpoint elsewhere.
pub(super) fn hash_at_depth(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> Done {
    let head = bridge.btc_head()?;
    let depth = i64::from(args.first().map_or(-1, Arg::int));
    if !(0..=head.height.saturating_sub(bridge.lowest_height()?)).contains(&depth) {
        return Err(Refusal::Failed);
    }
    let height = head.height.saturating_sub(depth);
    let block = bridge.at_depth(head, height).ok_or(Refusal::Failed)?;
    Ok(Some(bytes_result(block.hash().as_slice())))
}

pub(super) fn initial_height(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> Done {
    Ok(Some(int_result(bridge.lowest_height()?)))
}

/// Price of a look for confirmations: by depth and length of the branch, where the block is known.
pub(super) fn confirmations_cost(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> Result<u64, Refusal> {
    const BASE: u64 = 27_000;
    let head = bridge.btc_head()?;
    let Some(block) = bridge.btc_block(&hash_arg(args, 1)) else { return Ok(BASE) };
    let depth = head.height.saturating_sub(block.height).max(0);
    if depth > MAX_DEPTH {
        return Ok(BASE);
    }
    let branch = args.get(3).map_or(0, |list| list.list().len()) as u64;
    let steps = depth.unsigned_abs().saturating_mul(315);
    Ok(BASE.saturating_add(steps).saturating_add(branch.saturating_mul(144)))
}

/// Confirmations of a Bitcoin transaction, or a negative code.
pub(super) fn confirmations(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> Done {
    let branch = branch(args).ok_or(Refusal::Failed)?;
    let code = |code| Ok(Some(int_result(code)));
    let head = bridge.btc_head()?;
    let hash = hash_arg(args, 1);
    let Some(block) = bridge.btc_block(&hash) else { return code(-1) };
    let depth = head.height.saturating_sub(block.height);
    if depth.max(0) > MAX_DEPTH {
        return code(-4);
    }
    match bridge.at_height(block.height)? {
        Err(TooFar) => return code(-3),
        Ok(found) if found.as_ref() != Some(&block) => return code(-2),
        Ok(_) => {}
    }
    let root = branch.into_iter().fold(reversed(&hash_arg(args, 0)), |hash, (other, right)| {
        if right {
            hash_pair(&other, &hash)
        } else {
            hash_pair(&hash, &other)
        }
    });
    let witness = bridge.has(Rule::Rskip143).then(|| bridge.coinbase_root(hash.as_slice())).flatten();
    if block.root() != root && witness != Some(reversed(&root)) {
        return code(-5);
    }
    code(depth.saturating_add(1))
}

/// Hashes beside the way up in Bitcoin's own order, and whether the way comes from the right.
/// At most 32, and no more bits than hashes.
fn branch(args: &[Arg<'_>]) -> Option<Vec<(B256, bool)>> {
    let path = args.get(2)?.int();
    let hashes = args.get(3)?.list();
    // The reference counts the bits of positive numbers only: a negative path fits any number of hashes.
    let bits = if path < 0 { 0 } else { u32::BITS.saturating_sub(path.leading_zeros()) };
    if hashes.len() > 32 || bits as usize > hashes.len() {
        return None;
    }
    let step = |(index, hash): (usize, &&[u8])| {
        let hash = B256::try_from(*hash).unwrap_or_default();
        (reversed(&hash), (path as u32).checked_shr(index as u32).unwrap_or(0) & 1 == 1)
    };
    Some(hashes.iter().enumerate().map(step).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many steps the branch of a path over so many hashes has.
    fn steps(path: u32, hashes: usize) -> Option<usize> {
        let hash = [7; 32];
        let list = alloc::vec![hash.as_slice(); hashes];
        let word = Arg::Word(U256::ZERO);
        let args = [word.clone(), word, Arg::Word(U256::from(path)), Arg::List(list)];
        branch(&args).map(|steps| steps.len())
    }

    #[test]
    fn a_path_has_no_more_bits_than_there_are_hashes_unless_it_is_negative() {
        assert_eq!((steps(0, 0), steps(1, 1), steps(3, 2)), (Some(0), Some(1), Some(2)));
        assert_eq!((steps(1, 0), steps(4, 2)), (None, None));
        assert_eq!((steps(0x8000_0000, 0), steps(u32::MAX, 3)), (Some(0), Some(3)));
        assert_eq!(
            (steps(u32::MAX >> 1, 31), steps(u32::MAX >> 1, 30), steps(0, 33)),
            (Some(31), None, None)
        );
    }
}
