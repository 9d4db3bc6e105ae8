//! The Bitcoin headers in the Bridge's cells, and the methods that read them. Each header is in the cell whose slot is its hash, the head
//! (the best header, of most work) in a cell with a name, and from RSKIP-199 on hashes are indexed by height.

use alloc::format;
use alloc::vec::Vec;

use alloy_primitives::{B256, U256, hex};

use super::super::abi::{Arg, bytes_result, int_result};
use super::super::cell_slot;
use super::NativeFailure;
use super::checkpoints::lowest_height;
use super::constants::Bitcoin;
use super::session::{Bridge, BridgeResult, hashed_slot};
use crate::consensus::Rule;
use crate::consensus::bitcoin::{BitcoinHeader, double_sha256, hash_pair, reversed};
use crate::types::rlp::{self, RlpReader};

/// Length of a Bitcoin header in bytes.
pub(super) const HEADER: usize = 80;
/// Greatest depth below the head at which confirmations are counted: a month of Bitcoin blocks.
const MAX_DEPTH: i64 = 4_320;
/// Name of the cell with the best header.
const HEAD: &str = "blockStoreChainHead";
/// Genesis header of Bitcoin's regression test network.
const REGTEST_GENESIS: [u8; HEADER] = hex!(
    "0100000000000000000000000000000000000000000000000000000000000000000000003ba3edfd7a7b12b27ac72c3e"
    "67768f617fc81bc3888a51323a9fb8aa4b1e5e4adae5494dffff7f2002000000"
);
/// Work of the genesis header of the regression test network.
const REGTEST_WORK: u64 = 2;

/// A Bitcoin header as a cell stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredHeader {
    /// Chain work up to this header.
    pub(super) work: U256,
    pub(super) height: i64,
    /// The header in Bitcoin's encoding.
    pub(super) header: [u8; HEADER],
}

impl StoredHeader {
    /// Decodes a cell: work in 32 bytes (12 before RSKIP-454), height in 4, header.
    fn decode(cell: &[u8]) -> Option<Self> {
        let (rest, header) = cell.split_last_chunk::<HEADER>()?;
        let (work, height) = rest.split_last_chunk::<4>()?;
        let work = U256::try_from_be_slice(work)?;
        Some(Self { work, height: i64::from(i32::from_be_bytes(*height)), header: *header })
    }

    /// Encodes the cell; see [`Self::decode`].
    fn encode(&self, rules: crate::consensus::RuleSet) -> Vec<u8> {
        // Before RSKIP-454 the first 20 of the 32 bytes of the work are left out.
        let skip = if rules.has(Rule::Rskip454) { 0 } else { 20 };
        let mut out: Vec<u8> = self.work.to_be_bytes::<32>().into_iter().skip(skip).collect();
        out.extend_from_slice(&(self.height as i32).to_be_bytes());
        out.extend_from_slice(&self.header);
        out
    }

    /// Hash in display order, which is also the slot of the header.
    pub(super) fn hash(&self) -> B256 {
        reversed(&double_sha256(&self.header))
    }

    /// Hash of the parent header, in display order.
    pub(super) fn previous(&self) -> B256 {
        BitcoinHeader::first_of(&self.header).map_or(B256::ZERO, |header| reversed(&header.previous()))
    }

    /// Merkle root of the transactions, in internal byte order.
    fn root(&self) -> B256 {
        BitcoinHeader::first_of(&self.header).map_or(B256::ZERO, |header| header.merkle_root())
    }
}

impl Bridge<'_> {
    /// The best header. The first use initialises the store, and writes all cells but the index at once.
    pub(super) fn btc_head(&mut self) -> Result<StoredHeader, NativeFailure> {
        let cell = self.stored(cell_slot(HEAD));
        if !cell.is_empty() {
            return StoredHeader::decode(&cell).ok_or(NativeFailure::Failed);
        }
        if self.constants.bitcoin != Bitcoin::Regtest {
            return Err(NativeFailure::NotSimulated("initialisation of the Bitcoin store"));
        }
        let genesis = StoredHeader { work: U256::from(REGTEST_WORK), height: 0, header: REGTEST_GENESIS };
        self.put(&genesis);
        self.set_head(&genesis);
        Ok(genesis)
    }

    /// The header with this hash (display order).
    pub(super) fn btc_block(&mut self, hash: &B256) -> Option<StoredHeader> {
        StoredHeader::decode(&self.stored((*hash).into()))
    }

    /// Writes a header to its cell.
    pub(super) fn put(&mut self, block: &StoredHeader) {
        let bytes = block.encode(self.call.rules);
        self.write_now(block.hash().into(), bytes);
    }

    /// Makes a stored header the best header.
    pub(super) fn set_head(&mut self, block: &StoredHeader) {
        let bytes = block.encode(self.call.rules);
        self.write_now(cell_slot(HEAD), bytes);
        self.index(block);
    }

    /// Stores the hash of a header in the index by height (RSKIP-199).
    pub(super) fn index(&mut self, block: &StoredHeader) {
        if self.has(Rule::Rskip199) {
            let mut bytes = Vec::new();
            rlp::put_str(&mut bytes, block.hash().as_slice());
            self.save(index_slot(block.height), bytes);
        }
    }

    /// The header at a height of the best chain. `Err(TooFar)` above the head, and from RSKIP-199 on below the heights that the store
    /// searches.
    fn at_height(&mut self, height: i64) -> Result<Result<Option<StoredHeader>, TooFar>, NativeFailure> {
        let head = self.btc_head()?;
        let (start, depth) = (self.constants.index_height, self.constants.index_depth);
        let below_head = head.height.saturating_sub(depth);
        // Until the index covers `depth` blocks, the store searches that many blocks below the head.
        let lowest = if head.height.saturating_sub(start) > depth { start } else { below_head };
        let indexed = self.has(Rule::Rskip199);
        if height > head.height || (indexed && height < lowest) {
            return Ok(Err(TooFar));
        }
        if indexed {
            let cell = self.stored(index_slot(height));
            let hash = RlpReader::new(&cell).next_str("hash").ok().and_then(|hash| B256::try_from(hash).ok());
            if let Some(block) = hash.and_then(|hash| self.btc_block(&hash)) {
                return Ok(Ok(Some(block)));
            }
        }
        Ok(Ok(self.at_depth(head, height)))
    }

    /// Height of the first header of the store.
    fn lowest_height(&mut self) -> Result<i64, NativeFailure> {
        let created = self.active_federation().created;
        lowest_height(self.constants.bitcoin, created)
    }

    /// Walks down from the head to a height.
    fn at_depth(&mut self, head: StoredHeader, height: i64) -> Option<StoredHeader> {
        let mut block = head;
        while block.height > height {
            block = self.below(&block)?;
        }
        Some(block)
    }

    /// The parent of a header. Cells can be set to anything by overrides or changed states. A parent must
    /// therefore be exactly one height lower; otherwise a header that is its own parent would be walked
    /// forever.
    pub(super) fn below(&mut self, block: &StoredHeader) -> Option<StoredHeader> {
        let height = block.height.saturating_sub(1);
        self.btc_block(&block.previous()).filter(|below| below.height == height)
    }

    /// The witness Merkle root that was registered for a block (RSKIP-143).
    pub(super) fn coinbase_root(&mut self, hash: &[u8]) -> Option<B256> {
        let name = format!("coinbaseInformation-{}", hex::encode(hash));
        let cell = self.hashed(&name);
        B256::try_from(RlpReader::list(&cell, "coinbase").ok()?.next_str("root").ok()?).ok()
    }
}

/// The height is outside of the range that the store searches.
struct TooFar;

/// The slot of the cell with the hash of the header at a height.
fn index_slot(height: i64) -> U256 {
    hashed_slot(&format!("btcBlockHeight-{height}"))
}

/// The argument of type `bytes32` at an index.
fn hash_arg(args: &[Arg<'_>], index: usize) -> B256 {
    args.get(index).and_then(|arg| B256::try_from(arg.bytes()).ok()).unwrap_or_default()
}

/// A header as the result; empty bytes for `None`.
fn header(block: Option<StoredHeader>) -> BridgeResult {
    Ok(Some(match block {
        Some(block) => bytes_result(&block.header),
        None => bytes_result(&[]),
    }))
}

/// `getBtcBlockchainBestChainHeight`
pub(super) fn best_height(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    Ok(Some(int_result(bridge.btc_head()?.height)))
}

/// `getBtcBlockchainBestBlockHeader`
pub(super) fn best_header(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    let head = bridge.btc_head()?;
    header(Some(head))
}

/// `getBtcBlockchainBlockHeaderByHash`
pub(super) fn header_by_hash(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    bridge.btc_head()?;
    header(bridge.btc_block(&hash_arg(args, 0)))
}

/// `getBtcBlockchainParentBlockHeaderByHash`
pub(super) fn parent_header(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    bridge.btc_head()?;
    let block = bridge.btc_block(&hash_arg(args, 0));
    header(block.and_then(|block| bridge.btc_block(&block.previous())))
}

/// `getBtcBlockchainBlockHeaderByHeight`
pub(super) fn header_by_height(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    let height = i64::from(args.first().map_or(-1, Arg::int));
    match bridge.at_height(height)? {
        Ok(block) => header(block),
        Err(TooFar) => header(None),
    }
}

/// `getBtcBlockchainBlockHashAtDepth`: the hash of the header at a depth, down to the first header of the store. That is genesis on
/// regtest, and a checkpoint elsewhere.
pub(super) fn hash_at_depth(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    let head = bridge.btc_head()?;
    let depth = i64::from(args.first().map_or(-1, Arg::int));
    if !(0..=head.height.saturating_sub(bridge.lowest_height()?)).contains(&depth) {
        return Err(NativeFailure::Failed);
    }
    let height = head.height.saturating_sub(depth);
    let block = bridge.at_depth(head, height).ok_or(NativeFailure::Failed)?;
    Ok(Some(bytes_result(block.hash().as_slice())))
}

/// `getBtcBlockchainInitialBlockHeight`
pub(super) fn initial_height(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    Ok(Some(int_result(bridge.lowest_height()?)))
}

/// Price of `getBtcTransactionConfirmations`. If the store has the block, the price depends on the block's depth and on the length of the
/// Merkle branch.
pub(super) fn confirmations_cost(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> Result<u64, NativeFailure> {
    /// Price in gas without walking to the block and hashing.
    const BASE: u64 = 27_000;
    /// Gas for each block between the head and the block.
    const BLOCK: u64 = 315;
    /// Gas for each hash of the Merkle branch.
    const HASH: u64 = 144;
    let head = bridge.btc_head()?;
    let Some(block) = bridge.btc_block(&hash_arg(args, 1)) else { return Ok(BASE) };
    let depth = head.height.saturating_sub(block.height).max(0);
    if depth > MAX_DEPTH {
        return Ok(BASE);
    }
    let branch = args.get(3).map_or(0, |list| list.list().len()) as u64;
    let steps = depth.unsigned_abs().saturating_mul(BLOCK);
    Ok(BASE.saturating_add(steps).saturating_add(branch.saturating_mul(HASH)))
}

/// `getBtcTransactionConfirmations`: the number of confirmations of a Bitcoin transaction, or an error code: -1 if the store does not have
/// the block, -2 if the block is not on the best chain, -3 if the height is out of range, -4 if the block is too deep, -5 if the Merkle
/// branch does not lead to the block's root.
pub(super) fn confirmations(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    let branch = branch(args).ok_or(NativeFailure::Failed)?;
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
        if right { hash_pair(&other, &hash) } else { hash_pair(&hash, &other) }
    });
    let witness = bridge.has(Rule::Rskip143).then(|| bridge.coinbase_root(hash.as_slice())).flatten();
    // Unlike the root of a header, the registered root is in display order.
    if block.root() != root && witness != Some(reversed(&root)) {
        return code(-5);
    }
    code(depth.saturating_add(1))
}

/// The Merkle branch: for each level the sibling's hash in internal byte order, and whether the node itself is on the right. `None` if
/// there are more than 32 hashes, or more path bits than hashes.
fn branch(args: &[Arg<'_>]) -> Option<Vec<(B256, bool)>> {
    let path = args.get(2)?.int();
    let hashes = args.get(3)?.list();
    // The reference node counts the bits of positive numbers only, so a negative path fits any number of
    // hashes.
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

    /// Number of steps in the branch of a path with this number of hashes.
    fn steps(path: u32, hashes: usize) -> Option<usize> {
        let hash = [7; 32];
        let list = alloc::vec![hash.as_slice(); hashes];
        let word = Arg::Word(U256::ZERO);
        let args = [word.clone(), word, Arg::Word(U256::from(path)), Arg::List(list)];
        branch(&args).map(|steps| steps.len())
    }

    #[test]
    fn only_a_negative_path_may_have_more_bits_than_hashes() {
        assert_eq!((steps(0, 0), steps(1, 1), steps(3, 2)), (Some(0), Some(1), Some(2)));
        assert_eq!((steps(1, 0), steps(4, 2)), (None, None));
        assert_eq!((steps(0x8000_0000, 0), steps(u32::MAX, 3)), (Some(0), Some(3)));
        assert_eq!(
            (steps(u32::MAX >> 1, 31), steps(u32::MAX >> 1, 30), steps(0, 33)),
            (Some(31), None, None)
        );
    }
}
