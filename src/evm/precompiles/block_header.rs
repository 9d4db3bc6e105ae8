//! 0x01000010 (RSKIP-119): the native contract that returns header fields of the 4,000 newest ancestors and of their uncles.

use alloc::vec::Vec;

use alloy_primitives::{Bytes, U256};

use super::abi::{Arg, ArgKind, bytes_result, decode};
use super::{NativeCall, NativeFailure, NativeHost};
use crate::consensus::{Rule, RuleSet};
use crate::types::{MERGED_MINING_TAG, RawUint, SealedHeader};

/// Lowest depth for which the contract returns an empty result.
const FIRST_MISSING_DEPTH: u64 = 4_000;
/// Length of the hash between a merged-mining tag and the data after it.
const COMMITMENT: usize = 32;

/// The methods: each returns this field of a header.
#[derive(Clone, Copy)]
enum HeaderMethod {
    Coinbase,
    Hash,
    /// The bytes after the merged-mining tag of the Bitcoin coinbase.
    Tags,
    MinGasPrice,
    GasLimit,
    GasUsed,
    Difficulty,
    BitcoinHeader,
    UncleCoinbase,
    DifficultyWithUncles,
    CumulativeWork,
}

/// The method and its arguments; `None` if the input calls no method of these rules.
fn parse(input: &[u8], rules: RuleSet) -> Option<(HeaderMethod, Vec<Arg<'_>>)> {
    let (selector, rest) = input.split_first_chunk::<4>()?;
    let rskip536 = rules.has(Rule::Rskip536);
    let method = match u32::from_be_bytes(*selector) {
        // `getCoinbaseAddress(int256)`
        0x243e_7d36 => HeaderMethod::Coinbase,
        // `getBlockHash(int256)`
        0x2cce_81aa => HeaderMethod::Hash,
        // `getMergedMiningTags(int256)`
        0x5ca0_53dd => HeaderMethod::Tags,
        // `getMinGasPrice(int256)`
        0x1f1d_b3ba => HeaderMethod::MinGasPrice,
        // `getGasLimit(int256)`
        0x08a0_6364 => HeaderMethod::GasLimit,
        // `getGasUsed(int256)`
        0x06ac_702b => HeaderMethod::GasUsed,
        // `getDifficulty(int256)`
        0x9319_a35b => HeaderMethod::Difficulty,
        // `getBitcoinHeader(int256)`
        0x3073_c6eb => HeaderMethod::BitcoinHeader,
        // `getUncleCoinbaseAddress(int256,int256)`
        0xabcd_8984 => HeaderMethod::UncleCoinbase,
        // `getDifficultyWithUncles(int256)`
        0x579e_e593 if rskip536 => HeaderMethod::DifficultyWithUncles,
        // `getCumulativeWork(int256)`
        0x096c_8196 if rskip536 => HeaderMethod::CumulativeWork,
        _ => return None,
    };
    let kinds: &[ArgKind] = match method {
        HeaderMethod::UncleCoinbase => &[ArgKind::Word, ArgKind::Word],
        _ => &[ArgKind::Word],
    };
    Some((method, decode(rest, kinds)?))
}

/// 4,000 gas and 2 per byte; 0 for input that cannot run.
pub(super) fn price(input: &[u8], rules: RuleSet) -> u64 {
    match parse(input, rules) {
        Some(_) => (input.len() as u64).saturating_mul(2).saturating_add(4_000),
        None => 0,
    }
}

/// Returns the field as `bytes`; empty bytes if there is no such ancestor.
///
/// # Errors
/// [`NativeFailure::Failed`] for an unknown method, a negative depth or index, or a tag whose hash is cut off.
pub(super) fn run(call: &NativeCall<'_>, host: &mut dyn NativeHost) -> Result<Bytes, NativeFailure> {
    let (method, args) = parse(call.input, call.rules).ok_or(NativeFailure::Failed)?;
    let depth = match args.first().and_then(int16) {
        None => return Ok(bytes_result(&[])),
        Some(depth) => u64::try_from(depth).map_err(|_| NativeFailure::Failed)?,
    };
    let Some(number) = ancestor(call.block.number, depth) else { return Ok(bytes_result(&[])) };
    let Some(header) = host.header(number) else { return Ok(bytes_result(&[])) };
    Ok(bytes_result(&field(method, &header, &args, host)?))
}

/// A signed 16-bit number; `None` outside of its range.
fn int16(arg: &Arg<'_>) -> Option<i16> {
    i16::try_from(arg.signed()?).ok()
}

/// Height of the ancestor of the executing block at a depth: 0 is the parent. The genesis block is found only at depth 0.
fn ancestor(executing: u64, depth: u64) -> Option<u64> {
    let parent = executing.checked_sub(1)?;
    match depth {
        0 => Some(parent),
        FIRST_MISSING_DEPTH.. => None,
        _ => parent.checked_sub(depth).filter(|number| *number > 0),
    }
}

/// The bytes of a field.
fn field(
    method: HeaderMethod,
    header: &SealedHeader,
    args: &[Arg<'_>],
    host: &mut dyn NativeHost,
) -> Result<Vec<u8>, NativeFailure> {
    Ok(match method {
        HeaderMethod::Coinbase => header.coinbase.unwrap_or_default().to_vec(),
        HeaderMethod::Hash => header.hash().to_vec(),
        HeaderMethod::Tags => tags(&header.coinbase_tx).ok_or(NativeFailure::Failed)?.to_vec(),
        HeaderMethod::MinGasPrice => java_bytes(header.minimum_gas_price.value()),
        HeaderMethod::GasLimit => raw_bytes(&header.gas_limit),
        HeaderMethod::GasUsed => java_bytes(U256::from(header.gas_used)),
        HeaderMethod::Difficulty => java_bytes(header.difficulty.value()),
        HeaderMethod::BitcoinHeader => header.bitcoin_header.to_vec(),
        HeaderMethod::UncleCoinbase => uncle_coinbase(header, args.get(1), host)?,
        HeaderMethod::DifficultyWithUncles => {
            let uncles = host.uncles(header.number).unwrap_or_default();
            let sum = uncles
                .iter()
                .fold(header.difficulty.value(), |sum, uncle| sum.saturating_add(uncle.difficulty.value()));
            java_bytes(sum)
        }
        HeaderMethod::CumulativeWork => java_bytes(host.total_difficulty(header.number).unwrap_or_default()),
    })
}

/// The miner of the uncle at an index; empty if there is no such uncle.
fn uncle_coinbase(
    header: &SealedHeader,
    index: Option<&Arg<'_>>,
    host: &mut dyn NativeHost,
) -> Result<Vec<u8>, NativeFailure> {
    let Some(index) = index.and_then(int16) else { return Ok(Vec::new()) };
    let index = usize::try_from(index).map_err(|_| NativeFailure::Failed)?;
    if index as u64 >= u64::from(header.uncle_count) {
        return Ok(Vec::new());
    }
    let uncles = host.uncles(header.number).unwrap_or_default();
    let coinbase = uncles.get(index).and_then(|uncle| uncle.coinbase);
    Ok(coinbase.map(|coinbase| coinbase.to_vec()).unwrap_or_default())
}

/// The bytes after the last merged-mining tag of Rootstock and its hash; `None` if the hash is cut off.
fn tags(coinbase_tx: &[u8]) -> Option<&[u8]> {
    let tag = MERGED_MINING_TAG.as_slice();
    match coinbase_tx.windows(tag.len()).rposition(|window| window == tag) {
        None => Some(&[]),
        Some(at) => coinbase_tx.get(at.checked_add(tag.len())?.checked_add(COMMITMENT)?..),
    }
}

/// The bytes of a number as the header encodes them, leading zeros included.
fn raw_bytes(number: &RawUint) -> Vec<u8> {
    let word = number.value().to_be_bytes::<32>();
    let len = usize::try_from(number.len()).unwrap_or(usize::MAX);
    word.get(word.len().saturating_sub(len)..).unwrap_or_default().to_vec()
}

/// The bytes that Java's `BigInteger.toByteArray` returns: the top bit is zero, as the sign, and zero has one byte.
fn java_bytes(number: U256) -> Vec<u8> {
    let mut bytes = number.to_be_bytes_trimmed_vec();
    if bytes.first().is_none_or(|top| *top >= 0x80) {
        bytes.insert(0, 0);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn genesis_is_found_only_at_depth_0() {
        assert_eq!(ancestor(0, 0), None);
        assert_eq!(ancestor(1, 0), Some(0));
        assert_eq!(ancestor(2, 1), None);
        assert_eq!(ancestor(5_000, 3_999), Some(1_000));
        assert_eq!(ancestor(5_000, 4_000), None);
    }

    #[test]
    fn tags_are_read_after_the_last_commitment() {
        let mut tx = b"RSKBLOCK:x".to_vec();
        assert_eq!(tags(&tx), None);
        tx.extend_from_slice(b"RSKBLOCK:");
        tx.extend_from_slice(&[7; 32]);
        assert_eq!(tags(&tx), Some(&[][..]));
        tx.extend_from_slice(b"more");
        assert_eq!(tags(&tx), Some(&b"more"[..]));
        assert_eq!(tags(b"none"), Some(&[][..]));
    }

    #[test]
    fn numbers_have_the_bytes_of_a_java_big_integer() {
        assert_eq!(java_bytes(U256::ZERO), [0]);
        assert_eq!(java_bytes(U256::from(0x80)), [0, 0x80]);
        assert_eq!(java_bytes(U256::from(0x7f)), [0x7f]);
    }
}
