//! RLP decoding of headers: in full, as the raw header of JSON-RPC, and not mined yet. None of these forms is compressed.

use alloc::vec::Vec;

use alloy_primitives::{Address, B256, Bloom, Bytes, keccak256};

use super::error::{FieldError, FieldRule, FirstError};
use super::header::{Header, HeaderError, HeaderShape, HeaderVersion, SealedHeader};
use super::number::{RawUint, SignedUint};
use super::rlp::{ListBuf, RlpReader, fixed, uint, uint63};

/// Most items of a header: version 2 with all mining fields.
const MAX_ITEMS: usize = 23;
/// Least items of a header: version 0 without UMM root and mining fields. All headers begin with these.
const MIN_ITEMS: usize = 16;
/// Position of the block number.
const NUMBER_ITEM: usize = 8;
/// Length of a UMM root that is not empty, in bytes.
const UMM_ROOT_LEN: usize = 20;

impl Header {
    /// Decodes a header with three mining fields (full), one (the form of `rsk_getRawBlockHeaderBy*` from
    /// RSKIP-92 on) or none (not mined yet).
    ///
    /// Encoding the result in the same form returns the input, except that a missing base event (see
    /// [`HeaderShape::base_event_optional`]) is written as an empty one.
    pub fn decode(rlp: &[u8], shape_of: &dyn Fn(u64) -> HeaderShape) -> Result<Self, HeaderError> {
        let items = RlpItems::split(payload(rlp)?)?;
        let layout = HeaderLayout::of(&items, shape_of)?;
        read_fields(&items, &layout)
    }

    /// As [`Self::decode`], but also returns the block hash and the mining base hash. For version 0 both are
    /// computed from the input bytes without encoding the header again.
    pub fn decode_sealed(
        rlp: &[u8],
        shape_of: &dyn Fn(u64) -> HeaderShape,
    ) -> Result<(SealedHeader, B256), HeaderError> {
        // Hashing needs the items in one buffer with space for another list header before them. Reading the
        // fields from this copy is also faster than from `rlp`, which is seldom in the processor's first cache.
        let mut list = ListBuf::of_payload(payload(rlp)?);
        let items = RlpItems::split(list.payload())?;
        let layout = HeaderLayout::of(&items, shape_of)?;
        let header = read_fields(&items, &layout)?;
        if layout.shape.version != HeaderVersion::V0 {
            return Ok(header.seal_with_mining_base());
        }
        // In version 0 the preimages of both hashes are prefixes of the input.
        let base_end = items.end_of(layout.base);
        let hashed_mining = if layout.shape.hash_covers_proof { 3 } else { 1 };
        let hash_end = items.end_of(layout.base.saturating_add(hashed_mining.min(layout.mining)));
        let bare = keccak256(list.prefix(base_end));
        let hash = if layout.mining == 0 { bare } else { keccak256(list.prefix(hash_end)) };
        let mining_base = header.mix_umm_root(bare);
        Ok((SealedHeader::from_parts(header, hash), mining_base))
    }
}

/// The string items of the list, not yet interpreted.
struct RlpItems<'a> {
    strings: [&'a [u8]; MAX_ITEMS],
    /// End of each item in the payload.
    ends: [usize; MAX_ITEMS],
    count: usize,
}

/// The items of the list that the header is.
fn payload(rlp: &[u8]) -> Result<&[u8], FieldError> {
    RlpReader::list(rlp, "header").map(|list| list.rest())
}

impl<'a> RlpItems<'a> {
    fn split(payload: &'a [u8]) -> Result<Self, HeaderError> {
        let mut reader = RlpReader::new(payload);
        let (mut strings, mut ends, mut count) = ([&[][..]; MAX_ITEMS], [0; MAX_ITEMS], 0usize);
        for (string, end) in strings.iter_mut().zip(&mut ends) {
            if reader.is_empty() {
                break;
            }
            *string = reader.next_str(ITEM_NAMES.get(count).copied().unwrap_or("header.item"))?;
            *end = payload.len().saturating_sub(reader.remaining());
            count = count.saturating_add(1);
        }
        if !reader.is_empty() || count < MIN_ITEMS {
            // The exact number of surplus items is not needed.
            let found = if reader.is_empty() { count } else { MAX_ITEMS.saturating_add(1) };
            let rule = FieldRule::Items { expected: MIN_ITEMS, found };
            return Err(FieldError::new("header", rule).into());
        }
        Ok(Self { strings, ends, count })
    }

    fn get(&self, index: usize) -> &'a [u8] {
        self.strings.get(index).copied().unwrap_or(&[])
    }

    /// The position in the payload at which the first `count` items end.
    fn end_of(&self, count: usize) -> usize {
        count.checked_sub(1).and_then(|i| self.ends.get(i)).copied().unwrap_or(0)
    }
}

/// Field names by position, for errors of the list structure. Later fields depend on the version.
const ITEM_NAMES: [&str; MIN_ITEMS] = [
    "header.parentHash",
    "header.sha3Uncles",
    "header.miner",
    "header.stateRoot",
    "header.transactionsRoot",
    "header.receiptsRoot",
    "header.logsBloom",
    "header.difficulty",
    "header.number",
    "header.gasLimit",
    "header.gasUsed",
    "header.timestamp",
    "header.extraData",
    "header.paidFees",
    "header.minimumGasPrice",
    "header.uncleCount",
];

/// The items that are present at this height.
struct HeaderLayout {
    shape: HeaderShape,
    number: u64,
    /// Number of items before the mining fields.
    base: usize,
    /// Number of mining fields: 0, 1 or 3.
    mining: usize,
    /// Whether the base event item is present.
    base_event: bool,
}

impl HeaderLayout {
    /// Finds the layout from the block number and the number of items.
    fn of(items: &RlpItems<'_>, shape_of: &dyn Fn(u64) -> HeaderShape) -> Result<Self, HeaderError> {
        let number = uint63(items.get(NUMBER_ITEM), "header.number")?;
        let shape = shape_of(number);
        let base = shape.base_items();
        let v2 = shape.version == HeaderVersion::V2;
        let may_lack_event = v2 && shape.base_event_optional;
        let mining = items.count.checked_sub(base);
        let (base, mining, base_event) = match (mining, may_lack_event) {
            (Some(3), _) => (base, 3, v2),
            (Some(0), _) => (base, 0, v2),
            (Some(1), _) if !shape.hash_covers_proof => (base, 1, v2),
            // One item short: the base event is missing. The raw-RPC form cannot lack it, because nodes write
            // an empty event there.
            (Some(2), true) => (base.saturating_sub(1), 3, false),
            (None, true) if items.count.saturating_add(1) == base => (items.count, 0, false),
            _ => return Err(HeaderError::Items { number, found: items.count, base }),
        };
        let layout = Self { shape, number, base, mining, base_event };
        if mining > 0 && (0..mining).all(|i| items.get(base.saturating_add(i)).is_empty()) {
            return Err(HeaderError::EmptyMiningFields(number));
        }
        Ok(layout)
    }
}

/// Converts the items into the fields of a header.
fn read_fields(items: &RlpItems<'_>, layout: &HeaderLayout) -> Result<Header, HeaderError> {
    let Tail { umm_root, edges, base_event, mining } = Tail::read(items, layout)?;
    let [bitcoin_header, merkle_proof, coinbase_tx] = mining;
    // Genesis files give the difficulty with any number of leading zero bytes, which are hashed.
    let genesis = layout.number == 0;
    let mut first = FirstError::default();
    let header = Header {
        shape: layout.shape,
        parent_hash: hash(items, 0, &mut first),
        uncles_hash: hash(items, 1, &mut first),
        coinbase: first.of(optional_address(items.get(2), "header.miner")),
        state_root: hash(items, 3, &mut first),
        transactions_root: hash(items, 4, &mut first),
        receipts_root: hash(items, 5, &mut first),
        logs_bloom: first.of(fixed::<256>(items.get(6), "header.logsBloom").map(Bloom::from)),
        difficulty: first.of(SignedUint::from_be_slice(items.get(7), genesis, "header.difficulty")),
        number: layout.number,
        gas_limit: first.of(RawUint::from_be_slice(items.get(9), "header.gasLimit")),
        gas_used: first.of(uint63(items.get(10), "header.gasUsed")),
        timestamp: first.of(uint63(items.get(11), "header.timestamp")),
        extra_data: Bytes::copy_from_slice(items.get(12)),
        paid_fees: first.of(uint(items.get(13), "header.paidFees")),
        minimum_gas_price: first.of(SignedUint::from_be_slice(
            items.get(14),
            false,
            "header.minimumGasPrice",
        )),
        uncle_count: first.of(uncle_count(items.get(15))),
        umm_root,
        edges,
        base_event,
        bitcoin_header,
        merkle_proof,
        coinbase_tx,
    };
    first.done()?;
    Ok(header)
}

/// The hash at a position; an error goes to `first`.
fn hash(items: &RlpItems<'_>, at: usize, first: &mut FirstError) -> B256 {
    let name = ITEM_NAMES.get(at).copied().unwrap_or("header.item");
    first.of(fixed::<32>(items.get(at), name).map(B256::from))
}

/// Converts an address; the empty string is `None`.
pub(super) fn optional_address(bytes: &[u8], field: &'static str) -> Result<Option<Address>, FieldError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    fixed::<20>(bytes, field).map(|a| Some(Address::from(a)))
}

fn uncle_count(bytes: &[u8]) -> Result<u32, FieldError> {
    let count = uint63(bytes, "header.uncleCount")?;
    // The reference node reads the count as a signed 32-bit integer.
    match i32::try_from(count) {
        Ok(count) => Ok(count.unsigned_abs()),
        Err(_) => Err(FieldError::new("header.uncleCount", FieldRule::TooLarge(31))),
    }
}

/// The fields after the uncle count.
struct Tail {
    umm_root: Bytes,
    edges: Vec<u16>,
    base_event: Bytes,
    mining: [Bytes; 3],
}

impl Tail {
    fn read(items: &RlpItems<'_>, layout: &HeaderLayout) -> Result<Self, FieldError> {
        let shape = &layout.shape;
        let mut rest = (MIN_ITEMS..items.count).map(|i| items.get(i));
        let mut next = || rest.next().unwrap_or(&[]);
        let umm_root = if shape.umm_root { umm_root(next())? } else { Bytes::new() };
        if shape.version != HeaderVersion::V0 {
            version(next(), shape.version)?;
        }
        let has_edges = shape.edges && shape.version != HeaderVersion::V0;
        let edges = if has_edges { edges(next())? } else { Vec::new() };
        let base_event = if layout.base_event { Bytes::copy_from_slice(next()) } else { Bytes::new() };
        let mining = [next(), next(), next()].map(Bytes::copy_from_slice);
        Ok(Self { umm_root, edges, base_event, mining })
    }
}

fn umm_root(bytes: &[u8]) -> Result<Bytes, FieldError> {
    if !bytes.is_empty() && bytes.len() != UMM_ROOT_LEN {
        let rule = FieldRule::Length { expected: UMM_ROOT_LEN, found: bytes.len() };
        return Err(FieldError::new("header.ummRoot", rule));
    }
    Ok(Bytes::copy_from_slice(bytes))
}

fn version(bytes: &[u8], expected: HeaderVersion) -> Result<(), FieldError> {
    let field = "header.version";
    let [found] = fixed::<1>(bytes, field)?;
    if found != expected.byte() {
        let rule = FieldRule::Value { expected: expected.byte().into(), found: found.into() };
        return Err(FieldError::new(field, rule));
    }
    Ok(())
}

/// Reads the edges as little-endian 16-bit values.
fn edges(bytes: &[u8]) -> Result<Vec<u16>, FieldError> {
    let pairs = bytes.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return Err(FieldError::new("header.rskPteEdges", FieldRule::OddLength));
    }
    Ok(pairs.filter_map(|pair| pair.try_into().ok().map(u16::from_le_bytes)).collect())
}
