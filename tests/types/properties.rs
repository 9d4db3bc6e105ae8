//! Round trips of random values, and checks that random or damaged bytes are refused or are the only encoding
//! of a value.

use proptest::collection::vec;
use proptest::prelude::*;
use rootlight::types::block::{block_len, decode_uncles, encode_uncles};
use rootlight::types::json::{
    BlockParts, Location, RpcBlock, RpcReceipt, RpcTransaction, RpcTransactions, block_from_json,
    header_from_json, location_from_json, log_from_json, receipt_from_json, transaction_from_json,
};
use rootlight::types::{
    Address, B256, Block, BlockBody, Bloom, Bytes, Header, HeaderForm, HeaderShape, HeaderVersion, Log,
    RawUint, Receipt, SignedUint, Transaction, U256,
};

const CHAIN_ID: u64 = 33;

fn hash() -> impl Strategy<Value = B256> {
    any::<[u8; 32]>().prop_map(B256::from)
}

fn address() -> impl Strategy<Value = Address> {
    any::<[u8; 20]>().prop_map(Address::from)
}

fn data(max: usize) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..max).prop_map(Bytes::from)
}

/// Numbers of every bit length, each equally likely.
fn number() -> impl Strategy<Value = U256> {
    (any::<[u8; 32]>(), 0usize..=256).prop_map(|(bytes, bits)| {
        let value = U256::from_be_bytes(bytes);
        if bits == 0 { U256::ZERO } else { value >> (256 - bits) }
    })
}

fn small() -> impl Strategy<Value = u64> {
    (any::<u64>(), 1u32..64).prop_map(|(value, shift)| value >> shift)
}

/// A number with any number of leading zero bytes.
fn raw() -> impl Strategy<Value = RawUint> {
    (number(), 0u32..40).prop_map(|(value, len)| RawUint::padded(value, len))
}

fn signed() -> impl Strategy<Value = SignedUint> {
    prop_oneof![1 => Just(SignedUint::ABSENT), 9 => number().prop_map(SignedUint::new)]
}

fn shape() -> impl Strategy<Value = HeaderShape> {
    let version = prop_oneof![Just(HeaderVersion::V0), Just(HeaderVersion::V1), Just(HeaderVersion::V2)];
    (version, any::<[bool; 4]>()).prop_map(
        |(version, [umm_root, edges, hash_covers_proof, fork_detection])| HeaderShape {
            version,
            umm_root,
            edges,
            hash_covers_proof,
            fork_detection,
            base_event_optional: false,
        },
    )
}

fn header() -> impl Strategy<Value = Header> {
    let fixed = (shape(), hash(), hash(), proptest::option::of(address()), hash(), hash(), hash());
    let numbers = (signed(), small(), raw(), small(), small(), number(), signed(), 0u32..=i32::MAX as u32);
    let variable =
        (data(70), any::<bool>(), vec(any::<u16>(), 0..5), data(140), data(90), data(200), data(250));
    (fixed, vec(any::<u8>(), 256), numbers, variable).prop_map(|(fixed, bloom, numbers, variable)| {
        let (shape, parent_hash, uncles_hash, coinbase, state_root, transactions_root, receipts_root) = fixed;
        let (difficulty, number, gas_limit, gas_used, timestamp, paid_fees, minimum_gas_price, uncle_count) =
            numbers;
        let (extra_data, umm, edges, base_event, bitcoin_header, merkle_proof, coinbase_tx) = variable;
        let extended = shape.version != HeaderVersion::V0;
        let umm = umm && shape.umm_root;
        Header {
            shape,
            parent_hash,
            uncles_hash,
            coinbase,
            state_root,
            transactions_root,
            receipts_root,
            logs_bloom: Bloom::from_slice(&bloom),
            difficulty,
            number,
            gas_limit,
            gas_used,
            timestamp,
            extra_data,
            paid_fees,
            minimum_gas_price,
            uncle_count,
            umm_root: if umm { Bytes::from(vec![7; 20]) } else { Bytes::new() },
            edges: if extended && shape.edges { edges } else { Vec::new() },
            base_event: if shape.version == HeaderVersion::V2 { base_event } else { Bytes::new() },
            bitcoin_header,
            merkle_proof,
            coinbase_tx,
        }
    })
}

fn gas_price() -> impl Strategy<Value = RawUint> {
    prop_oneof![
        Just(RawUint::minimal(U256::ZERO)),
        Just(RawUint::signed_minimal(U256::ZERO)),
        number().prop_map(RawUint::minimal),
    ]
}

fn transaction() -> impl Strategy<Value = Transaction> {
    let nonce =
        raw().prop_map(|nonce| if nonce.len() == 1 { RawUint::minimal(nonce.value()) } else { nonce });
    let signature = (any::<u8>(), number(), number());
    (nonce, gas_price(), raw(), proptest::option::of(address()), number(), data(300), signature).prop_map(
        |(nonce, gas_price, gas_limit, to, value, data, (v, r, s))| Transaction {
            nonce,
            gas_price,
            gas_limit,
            to,
            value,
            data,
            v,
            r,
            s,
        },
    )
}

fn log() -> impl Strategy<Value = Log> {
    (address(), vec(hash(), 0..5), data(80)).prop_map(|(address, topics, data)| Log { address, topics, data })
}

fn receipt() -> impl Strategy<Value = Receipt> {
    (any::<bool>(), small(), small(), vec(log(), 0..6))
        .prop_map(|(success, cumulative, used, logs)| Receipt::new(success, cumulative, used, logs))
}

/// A change of an encoding: overwrite, insert, remove or cut.
#[derive(Debug, Clone)]
struct Damage {
    at: prop::sample::Index,
    kind: u8,
    byte: u8,
}

fn damage() -> impl Strategy<Value = Damage> {
    (any::<prop::sample::Index>(), 0u8..4, any::<u8>()).prop_map(|(at, kind, byte)| Damage { at, kind, byte })
}

impl Damage {
    fn apply(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        // An earlier change may have removed all bytes.
        if bytes.is_empty() {
            return bytes;
        }
        let at = self.at.index(bytes.len());
        match self.kind {
            0 => bytes[at] = self.byte,
            1 => bytes.insert(at, self.byte),
            2 => drop(bytes.remove(at)),
            _ => bytes.truncate(at),
        }
        bytes
    }
}

/// Checks that the bytes are refused, or are the only encoding of the header they decode to.
fn header_is_strict(bytes: &[u8], shape: HeaderShape) -> Result<(), TestCaseError> {
    let Ok(header) = Header::decode(bytes, &|_| shape) else {
        prop_assert!(Header::decode_sealed(bytes, &|_| shape).is_err());
        return Ok(());
    };
    let same = |form| header.encode(form) == bytes;
    prop_assert!(same(HeaderForm::Full) || same(HeaderForm::Raw));
    let (sealed, mining_base) = Header::decode_sealed(bytes, &|_| shape).unwrap();
    prop_assert_eq!(sealed.hash(), header.hash());
    prop_assert_eq!(mining_base, header.mining_base_hash());
    prop_assert_eq!(header.hashes().hash, header.hash());
    prop_assert_eq!(header.hashes().mining_base, mining_base);
    let _ = (header.hash_for_merged_mining(), header.fork_detection_data());
    Ok(())
}

proptest! {
    #[test]
    fn headers_decode_to_what_was_encoded(header in header()) {
        let full = header.encode(HeaderForm::Full);
        prop_assert_eq!(&Header::decode(&full, &|_| header.shape).unwrap(), &header);
        header_is_strict(&full, header.shape)?;
        if header.shape.hash_covers_proof || !header.bitcoin_header.is_empty() {
            let raw = header.encode(HeaderForm::Raw);
            let back = Header::decode(&raw, &|_| header.shape).unwrap();
            prop_assert_eq!(back.encode(HeaderForm::Raw), raw);
            prop_assert_eq!(back.hash(), header.hash());
        }
    }

    #[test]
    fn unmined_headers_decode_to_what_was_encoded(mut header in header()) {
        header.bitcoin_header = Bytes::new();
        header.merkle_proof = Bytes::new();
        header.coinbase_tx = Bytes::new();
        let full = header.encode(HeaderForm::Full);
        prop_assert_eq!(&Header::decode(&full, &|_| header.shape).unwrap(), &header);
        prop_assert_eq!(header.encode(HeaderForm::Hash), header.encode(HeaderForm::MergedMining));
    }

    #[test]
    fn damaged_headers_are_refused_or_have_one_encoding(header in header(), damage in damage()) {
        header_is_strict(&damage.apply(header.encode(HeaderForm::Full)), header.shape)?;
        header_is_strict(&damage.apply(header.encode(HeaderForm::Raw)), header.shape)?;
    }

    #[test]
    fn uncle_lists_and_blocks_decode_to_what_was_encoded(
        header in header(), uncle in header(), txs in vec(transaction(), 0..4),
    ) {
        let shape = header.shape;
        let uncle = Header { shape, umm_root: Bytes::new(), edges: Vec::new(), base_event: Bytes::new(), ..uncle };
        let uncles = vec![uncle.clone(), uncle];
        let list = encode_uncles(&uncles);
        prop_assert_eq!(&decode_uncles(&list, &|_| shape).unwrap(), &uncles);
        let block = Block { header, body: BlockBody { transactions: txs }, uncles };
        let rlp = block.encode();
        prop_assert_eq!(block_len(&block.header, &block.body.transactions, &block.uncles), rlp.len() as u64);
        prop_assert_eq!(Block::decode(&rlp, &|_| shape).unwrap(), block);
    }

    #[test]
    fn transactions_decode_to_what_was_encoded(tx in transaction(), damage in damage()) {
        let rlp = tx.encode();
        prop_assert_eq!(&Transaction::decode(&rlp).unwrap(), &tx);
        let damaged = damage.apply(rlp);
        if let Ok(other) = Transaction::decode(&damaged) {
            prop_assert_eq!(other.encode(), damaged);
            let _ = other.recover_sender(CHAIN_ID);
        }
    }

    #[test]
    fn receipts_decode_to_what_was_encoded(receipt in receipt(), damage in damage()) {
        let rlp = receipt.encode();
        prop_assert!(receipt.bloom_matches());
        prop_assert_eq!(&Receipt::decode(&rlp).unwrap(), &receipt);
        let damaged = damage.apply(rlp);
        if let Ok(other) = Receipt::decode(&damaged) {
            prop_assert_eq!(other.encode(), damaged);
        }
    }

    #[test]
    fn random_bytes_are_refused_or_have_one_encoding(bytes in vec(any::<u8>(), 0..800), shape in shape()) {
        header_is_strict(&bytes, shape)?;
        let _ = Block::decode(&bytes, &|_| shape);
        if let Ok(tx) = Transaction::decode(&bytes) {
            prop_assert_eq!(tx.encode(), bytes.clone());
        }
        if let Ok(receipt) = Receipt::decode(&bytes) {
            prop_assert_eq!(receipt.encode(), bytes);
        }
    }

    #[test]
    fn headers_are_rebuilt_from_their_json(mut header in header(), padded in any::<bool>()) {
        // Values that JSON cannot show, or for which too many values would have to be tried.
        header.umm_root = Bytes::new();
        header.uncle_count %= 11;
        // Genesis cannot be an uncle.
        header.number = header.number.max(1);
        let gas_limit = header.gas_limit.value();
        header.gas_limit = if padded { RawUint::signed_minimal(gas_limit) } else { RawUint::minimal(gas_limit) };
        let sealed = header.seal();
        let shape = sealed.shape;
        let shown = serde_json::to_string(&RpcBlock::uncle(&sealed, Some(&[]), None, None)).unwrap();
        prop_assert_eq!(&header_from_json(&shown, None, &|_| shape).unwrap(), &sealed);
        prop_assert!(header_from_json(&shown, Some(B256::ZERO), &|_| shape).is_err());
    }

    #[test]
    fn transactions_and_receipts_are_rebuilt_from_their_json(tx in transaction(), receipt in receipt(), at in hash()) {
        let canonical = Transaction {
            nonce: RawUint::minimal(tx.nonce.value()),
            gas_limit: RawUint::minimal(tx.gas_limit.value()),
            ..tx
        };
        let at = Location { block_hash: at, block_number: 5, index: 2 };
        let shown = RpcTransaction::new(&canonical, canonical.hash(), Address::ZERO, Some(&at));
        let json = serde_json::to_string(&shown).unwrap();
        prop_assert_eq!(&transaction_from_json(&json, None, CHAIN_ID).unwrap(), &canonical);
        prop_assert_eq!(location_from_json(&json).unwrap(), Some(at));
        let shown = RpcReceipt::new(&receipt, &canonical, canonical.hash(), Address::ZERO, &at, 3);
        let json = serde_json::to_string(&shown).unwrap();
        prop_assert_eq!(receipt_from_json(&json).unwrap(), receipt);
        prop_assert_eq!(location_from_json(&json).unwrap(), Some(at));
    }

    #[test]
    fn damaged_json_never_gives_another_header(header in header(), damages in vec(damage(), 1..4)) {
        let sealed = Header { umm_root: Bytes::new(), uncle_count: 0, ..header }.seal();
        let shape = sealed.shape;
        let parts = BlockParts {
            transactions: RpcTransactions::Hashes(vec![B256::ZERO]),
            uncles: Some(&[]),
            total_difficulty: Some(U256::from(1)),
            size: Some(1),
        };
        let mut json = serde_json::to_vec(&RpcBlock::new(&sealed, parts)).unwrap();
        for damage in damages {
            json = damage.apply(json);
        }
        let Ok(json) = String::from_utf8(json) else { return Ok(()) };
        if let Ok(other) = header_from_json(&json, Some(sealed.hash()), &|_| shape) {
            // Only fields that are not hashed can differ.
            prop_assert_eq!(other.hash(), sealed.hash());
            prop_assert_eq!(other.header().hash(), sealed.hash());
        }
        let _ = block_from_json(&json, None, &|_| shape, CHAIN_ID);
        let _ = (transaction_from_json(&json, None, CHAIN_ID), receipt_from_json(&json));
        let _ = (location_from_json(&json), log_from_json(&json));
    }

    #[test]
    fn random_text_is_refused(text in "\\PC{0,200}", shape in shape()) {
        prop_assert!(header_from_json(&text, None, &|_| shape).is_err());
        prop_assert!(transaction_from_json(&text, None, CHAIN_ID).is_err());
        prop_assert!(receipt_from_json(&text).is_err());
    }
}
