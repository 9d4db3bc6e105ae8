//! One test for each rule of the decoders. Each input breaks only one rule.

use crate::support;

use alloy_primitives::{address, b256};
use alloy_rlp::{Encodable, Error as RlpError, Header as RlpHeader};
use rootlight::types::{
    Address, B256, Block, Bloom, Bytes, FieldError, FieldRule, Header, HeaderError, HeaderForm, HeaderShape,
    HeaderVersion, Log, RawUint, Receipt, SenderError, SignedUint, Transaction, U256,
};
use support::shapes::{shape, testnet};

type StringItems = Vec<Vec<u8>>;

fn string(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    bytes.encode(&mut out);
    out
}

fn list(payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    RlpHeader { list: true, payload_length: payload.len() }.encode(&mut out);
    out.extend_from_slice(payload);
    out
}

fn list_of(items: &StringItems) -> Vec<u8> {
    list(&items.iter().flat_map(|item| string(item)).collect::<Vec<u8>>())
}

fn v2() -> HeaderShape {
    shape(HeaderVersion::V2, true, false)
}

/// The items of a valid version 2 header.
fn header_items() -> StringItems {
    let mut items: StringItems =
        vec![vec![1; 32], vec![2; 32], vec![3; 20], vec![4; 32], vec![5; 32], vec![6; 32]];
    items.extend([vec![0; 256], vec![0x00, 0x80], vec![9], vec![0, 0x98], vec![], vec![1, 0], vec![7; 3]]);
    items.extend([vec![], vec![0], vec![2], vec![8; 20], vec![2], vec![3, 0, 5, 1], vec![0xee; 4]]);
    items.extend([vec![0xbb; 80], vec![0xcc; 64], vec![0xdd; 100]]);
    items
}

fn decode(items: &StringItems) -> Result<Header, HeaderError> {
    let header = Header::decode(&list_of(items), &|_| v2());
    assert_eq!(header.is_ok(), Header::decode_sealed(&list_of(items), &|_| v2()).is_ok());
    header
}

fn field<T>(field: &'static str, rule: FieldRule) -> Result<T, HeaderError> {
    Err(HeaderError::Field(FieldError { field, rule }))
}

#[test]
fn the_valid_header_is_decoded() {
    let header = decode(&header_items()).unwrap();
    assert_eq!(header.difficulty.value(), U256::from(0x80));
    assert_eq!((header.number, header.timestamp, header.uncle_count), (9, 256, 2));
    assert_eq!((header.gas_limit.value(), header.gas_limit.len()), (U256::from(0x98), 2));
    assert_eq!(header.edges, [3, 261]);
    assert_eq!(header.encode(HeaderForm::Full), list_of(&header_items()));
}

#[test]
fn header_fields_that_break_a_rule_are_refused() {
    let length = |expected, found| FieldRule::Length { expected, found };
    let cases: Vec<(usize, Vec<u8>, &'static str, FieldRule)> = vec![
        (0, vec![1; 31], "header.parentHash", length(32, 31)),
        (1, vec![1; 33], "header.sha3Uncles", length(32, 33)),
        (2, vec![1; 19], "header.miner", length(20, 19)),
        (3, vec![], "header.stateRoot", length(32, 0)),
        (4, vec![1; 31], "header.transactionsRoot", length(32, 31)),
        (5, vec![1; 31], "header.receiptsRoot", length(32, 31)),
        (6, vec![1; 255], "header.logsBloom", length(256, 255)),
        (7, vec![0x80], "header.difficulty", FieldRule::Negative),
        (7, vec![0, 0x7f], "header.difficulty", FieldRule::NotMinimal),
        (7, vec![1; 33], "header.difficulty", FieldRule::TooLarge(256)),
        (8, vec![0], "header.number", FieldRule::NotMinimal),
        (8, vec![0x80, 0, 0, 0, 0, 0, 0, 0], "header.number", FieldRule::TooLarge(63)),
        (8, vec![1; 9], "header.number", FieldRule::TooLarge(63)),
        (9, vec![1; 33], "header.gasLimit", FieldRule::TooLarge(256)),
        (10, vec![0, 1], "header.gasUsed", FieldRule::NotMinimal),
        (10, vec![0xff; 8], "header.gasUsed", FieldRule::TooLarge(63)),
        (11, vec![0], "header.timestamp", FieldRule::NotMinimal),
        (11, vec![0xff; 8], "header.timestamp", FieldRule::TooLarge(63)),
        (13, vec![0], "header.paidFees", FieldRule::NotMinimal),
        (13, vec![1; 33], "header.paidFees", FieldRule::TooLarge(256)),
        (14, vec![0xff], "header.minimumGasPrice", FieldRule::Negative),
        (14, vec![0, 0], "header.minimumGasPrice", FieldRule::NotMinimal),
        (15, vec![0], "header.uncleCount", FieldRule::NotMinimal),
        (15, vec![0x80, 0, 0, 0], "header.uncleCount", FieldRule::TooLarge(31)),
        (16, vec![1; 19], "header.ummRoot", length(20, 19)),
        (17, vec![1], "header.version", FieldRule::Value { expected: 2, found: 1 }),
        (17, vec![0, 2], "header.version", length(1, 2)),
        (18, vec![1, 0, 2], "header.rskPteEdges", FieldRule::OddLength),
    ];
    for (index, bytes, name, rule) in cases {
        let mut items = header_items();
        items[index] = bytes;
        assert_eq!(decode(&items), field(name, rule));
    }
}

#[test]
fn header_fields_may_be_empty_or_padded_as_in_the_reference_node() {
    for (index, bytes) in [
        (2, vec![]),
        (7, vec![]),
        (7, vec![0]),
        (9, vec![]),
        (9, vec![0; 40]),
        (12, vec![1; 75]),
        (14, vec![]),
        (15, vec![0x7f, 0xff, 0xff, 0xff]),
        (16, vec![]),
        (18, vec![]),
        (19, vec![]),
        (20, vec![]),
        (21, vec![]),
    ] {
        let mut items = header_items();
        items[index] = bytes;
        let header = decode(&items).unwrap();
        assert_eq!(header.encode(HeaderForm::Full), list_of(&items));
    }
}

#[test]
fn an_absent_and_a_zero_minimum_gas_price_hash_differently() {
    let mut absent = header_items();
    absent[14] = Vec::new();
    let (absent, zero) = (decode(&absent).unwrap(), decode(&header_items()).unwrap());
    assert!(absent.minimum_gas_price.is_absent() && !zero.minimum_gas_price.is_absent());
    assert_eq!(absent.minimum_gas_price.value(), zero.minimum_gas_price.value());
    assert_ne!(absent.hash(), zero.hash());
}

#[test]
fn only_genesis_has_a_padded_difficulty() {
    let mut items = header_items();
    items[7] = vec![0, 0, 0, 0, 1];
    assert_eq!(decode(&items), field("header.difficulty", FieldRule::NotMinimal));
    items[8] = Vec::new();
    let genesis = decode(&items).unwrap();
    assert_eq!(genesis.difficulty.value(), U256::from(1));
    assert_eq!(genesis.encode(HeaderForm::Full), list_of(&items));
}

#[test]
fn the_number_of_items_depends_on_the_height() {
    let full = header_items();
    let count = |items: &StringItems, shape: HeaderShape| Header::decode(&list_of(items), &|_| shape);
    let wrong = |found| Err(HeaderError::Items { number: 9, found, base: 20 });
    assert!(count(&full[..20].to_vec(), v2()).is_ok());
    assert!(count(&full[..21].to_vec(), v2()).is_ok());
    assert_eq!(count(&full[..22].to_vec(), v2()), wrong(22));
    assert_eq!(count(&full[..19].to_vec(), v2()), wrong(19));
    // Before RSKIP-92, the raw form has all mining fields.
    let covered = HeaderShape { hash_covers_proof: true, ..v2() };
    assert_eq!(count(&full[..21].to_vec(), covered), wrong(21));
    assert!(count(&full, covered).is_ok());
    // Lists whose length no header has at any height.
    let none = |found| field("header", FieldRule::Items { expected: 16, found });
    assert_eq!(count(&full[..15].to_vec(), v2()), none(15));
    let mut long = full.clone();
    long.push(vec![1]);
    assert_eq!(count(&long, v2()), none(24));
}

#[test]
fn empty_mining_fields_must_be_left_out() {
    let mut items = header_items();
    for item in &mut items[20..] {
        item.clear();
    }
    assert_eq!(decode(&items), Err(HeaderError::EmptyMiningFields(9)));
    items.truncate(21);
    assert_eq!(decode(&items), Err(HeaderError::EmptyMiningFields(9)));
    items.truncate(20);
    assert!(!decode(&items).unwrap().has_mining_fields());
}

#[test]
fn the_base_event_may_be_missing_in_its_window_only() {
    let mut items = header_items();
    items.remove(19);
    assert_eq!(decode(&items), Err(HeaderError::Items { number: 9, found: 22, base: 20 }));
    let window = HeaderShape { base_event_optional: true, ..v2() };
    let short = Header::decode(&list_of(&items), &|_| window).unwrap();
    items.insert(19, Vec::new());
    assert_eq!(short.encode(HeaderForm::Full), list_of(&items));
    let whole = Header::decode(&list_of(&items), &|_| window).unwrap();
    assert_eq!(short, whole);
    // Without mining fields.
    items.truncate(19);
    let unmined = Header::decode(&list_of(&items), &|_| window).unwrap();
    assert_eq!(unmined.mining_base_hash(), whole.mining_base_hash());
    assert!(Header::decode(&list_of(&items), &|_| v2()).is_err());
    // The heights at which it may be missing.
    let optional = |number| testnet(number).base_event_optional;
    assert_eq!([7_604_199, 7_604_200, 7_799_999, 7_800_000].map(optional), [false, true, true, false]);
}

#[test]
fn rlp_must_be_in_shortest_form_without_trailing_bytes() {
    let rlp = list_of(&header_items());
    let mut long = rlp.clone();
    long.push(0);
    let decode = |bytes: &[u8]| Header::decode(bytes, &|_| v2());
    assert_eq!(decode(&long), field("header", FieldRule::Trailing(1)));
    assert_eq!(decode(&rlp[..rlp.len() - 1]), field("header", FieldRule::Rlp(RlpError::InputTooShort)));
    assert_eq!(decode(&string(&[1; 60])), field("header", FieldRule::Rlp(RlpError::UnexpectedString)));
    assert_eq!(decode(&[]), field("header", FieldRule::Rlp(RlpError::InputTooShort)));
    // A small byte with a length prefix, a long length for a short string, a length with a leading zero.
    let payload = |uncle_count: &[u8]| {
        let items = header_items();
        let mut out: Vec<u8> = items[..15].iter().flat_map(|item| string(item)).collect();
        out.extend_from_slice(uncle_count);
        out.extend(items[16..].iter().flat_map(|item| string(item)));
        list(&out)
    };
    assert!(decode(&payload(&[2])).is_ok());
    let refused = |rule| field("header.uncleCount", FieldRule::Rlp(rule));
    assert_eq!(decode(&payload(&[0x81, 2])), refused(RlpError::NonCanonicalSingleByte));
    assert_eq!(decode(&payload(&[0xb8, 1, 2])), refused(RlpError::NonCanonicalSize));
    assert_eq!(decode(&payload(&[0xb9, 0, 2, 1, 1])), refused(RlpError::LeadingZero));
    assert_eq!(decode(&payload(&[0xc1, 2])), refused(RlpError::UnexpectedList));
    assert_eq!(decode(&[0xff; 9]), field("header", FieldRule::Rlp(RlpError::InputTooShort)));
}

#[test]
fn fork_detection_data_are_read_after_the_last_tag() {
    let at = shape(HeaderVersion::V0, true, true);
    let mut header = decode(&header_items()).unwrap();
    header.shape = at;
    let prefix = header.mining_base_hash()[..20].to_vec();
    let tagged = |fdd: &[u8]| [b"RSKBLOCK:".as_slice(), &prefix, fdd].concat();
    let with = |coinbase: Vec<u8>| Header { coinbase_tx: coinbase.into(), ..header.clone() };
    assert_eq!(with(vec![0; 100]).hash_for_merged_mining(), Err(HeaderError::NoForkDetectionData(9)));
    assert_eq!(with(tagged(&[1; 11])).fork_detection_data(), None);
    assert_eq!(with(tagged(&[1; 12])).fork_detection_data(), Some([1; 12]));
    let twice = [tagged(&[1; 12]), tagged(&[2; 12])].concat();
    assert_eq!(with(twice.clone()).fork_detection_data(), Some([2; 12]));
    assert_eq!(with(twice).hash_for_merged_mining().unwrap()[20..], [2; 12]);
    // A truncated last tag hides the complete one before it.
    assert_eq!(with([tagged(&[1; 12]), tagged(&[])].concat()).fork_detection_data(), None);
    // A tag with the hash of another block is ignored.
    let foreign = [tagged(&[1; 12]), b"RSKBLOCK:".to_vec(), vec![9; 40]].concat();
    assert_eq!(with(foreign).fork_detection_data(), Some([1; 12]));
    // If the rule is not active, the hash is the complete keccak-256 hash.
    let before = Header { shape: HeaderShape { fork_detection: false, ..at }, ..with(tagged(&[1; 12])) };
    assert_eq!(before.hash_for_merged_mining(), Ok(before.mining_base_hash()));
    assert_eq!(before.fork_detection_data(), None);
}

#[test]
fn a_umm_root_changes_the_mining_base_hash() {
    let with = decode(&header_items()).unwrap();
    let mut items = header_items();
    items[16].clear();
    let without = decode(&items).unwrap();
    assert_ne!(with.mining_base_hash(), without.mining_base_hash());
    assert_eq!(
        without.mining_base_hash(),
        rootlight::types::keccak256(without.encode(HeaderForm::MergedMining))
    );
}

#[test]
fn receipts_that_break_a_rule_are_refused() {
    let log =
        Log { address: Address::repeat_byte(1), topics: vec![B256::repeat_byte(2)], data: Bytes::new() };
    let receipt = Receipt::new(true, 300, 21_000, vec![log]);
    let rlp = receipt.encode();
    let mut logs = Vec::new();
    let topics = list(&string(&[2; 32]));
    logs.extend(list(&[string(&[1; 20]), topics.clone(), string(&[])].concat()));
    let whole = |state: &[u8], cumulative: &[u8], bloom: &[u8], logs: &[u8], used: &[u8], status: &[u8]| {
        list(
            &[string(state), string(cumulative), string(bloom), list(logs), string(used), string(status)]
                .concat(),
        )
    };
    let bloom = receipt.logs_bloom;
    let used = [0x52, 0x08];
    assert_eq!(whole(&[1], &[1, 44], bloom.as_slice(), &logs, &used, &[1]), rlp);
    let refused = |rlp: Vec<u8>, field, rule| {
        assert_eq!(Receipt::decode(&rlp), Err(FieldError { field, rule }));
    };
    let b = bloom.as_slice();
    refused(
        whole(&[1], &[1, 44], b, &logs, &used, &[]),
        "receipt.status",
        FieldRule::Disagrees("receipt.root"),
    );
    refused(
        whole(&[2], &[1, 44], b, &logs, &used, &[2]),
        "receipt.root",
        FieldRule::Value { expected: 1, found: 2 },
    );
    refused(
        whole(&[1; 32], &[1, 44], b, &logs, &used, &[1]),
        "receipt.root",
        FieldRule::TooLong { limit: 1, found: 32 },
    );
    refused(whole(&[1], &[0, 44], b, &logs, &used, &[1]), "receipt.cumulativeGasUsed", FieldRule::NotMinimal);
    refused(whole(&[1], &[1, 44], b, &logs, &[0], &[1]), "receipt.gasUsed", FieldRule::NotMinimal);
    refused(
        whole(&[1], &[1, 44], &b[1..], &logs, &used, &[1]),
        "receipt.logsBloom",
        FieldRule::Length { expected: 256, found: 255 },
    );
    let with_log = |log: Vec<u8>| whole(&[1], &[1, 44], b, &list(&log), &used, &[1]);
    refused(
        with_log([string(&[1; 19]), topics.clone(), string(&[])].concat()),
        "log.address",
        FieldRule::Length { expected: 20, found: 19 },
    );
    refused(
        with_log([string(&[1; 20]), list(&string(&[2; 31])), string(&[])].concat()),
        "log.topics",
        FieldRule::Length { expected: 32, found: 31 },
    );
    refused(
        with_log([string(&[1; 20]), topics, string(&[]), string(&[])].concat()),
        "log",
        FieldRule::Trailing(1),
    );
    let mut long = rlp.clone();
    long.push(0);
    refused(long, "receipt", FieldRule::Trailing(1));
    let seventh = list(&[&rlp[3..], &string(&[])].concat());
    refused(seventh, "receipt", FieldRule::Trailing(1));
    assert!(!Receipt { logs_bloom: Bloom::ZERO, ..receipt }.bloom_matches());
}

/// The example in EIP-155, signed for chain id 1.
fn signed() -> Transaction {
    let raw = hex::decode(concat!(
        "f86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a76400008025",
        "a028ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa636276",
        "a067cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83"
    ));
    Transaction::decode(&raw.unwrap()).unwrap()
}

#[test]
fn the_example_of_eip_155_has_its_sender() {
    let tx = signed();
    assert_eq!(tx.chain_id(), Some(1));
    assert_eq!(tx.signing_hash(), b256!("daf5a779ae972f972197303d7b574746c7ef83eadac0f2791ad23db92e4c8e53"));
    assert_eq!(tx.recover_sender(1), Ok(address!("9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f")));
}

#[test]
fn signatures_that_break_a_rule_are_refused() {
    let order =
        U256::from_str_radix("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141", 16).unwrap();
    let tx = signed();
    assert_eq!(tx.recover_sender(30), Err(SenderError::ChainId { expected: 30, found: 1 }));
    for v in [0, 1, 26, 29, 34, 35, 36] {
        assert_eq!(Transaction { v, ..tx.clone() }.recover_sender(1), Err(SenderError::V(v)));
    }
    // The mirrored signature recovers the same key, but is not accepted.
    let mirrored = Transaction { s: order - tx.s, v: 38, ..tx.clone() };
    assert_eq!(mirrored.recover_sender(1), Err(SenderError::HighS));
    // Half the order is too high for `s`; one less is accepted.
    let half = order >> 1;
    assert_eq!(Transaction { s: half, ..tx.clone() }.recover_sender(1), Err(SenderError::HighS));
    assert!(Transaction { s: half - U256::from(1), ..tx.clone() }.recover_sender(1).is_ok());
    for (r, s) in [(U256::ZERO, tx.s), (tx.r, U256::ZERO), (order, tx.s), (U256::MAX, tx.s)] {
        assert_eq!(Transaction { r, s, ..tx.clone() }.recover_sender(1), Err(SenderError::NoKey));
    }
    // No point of the curve has x = 5.
    assert_eq!(Transaction { r: U256::from(5), ..tx.clone() }.recover_sender(1), Err(SenderError::NoKey));
    // A transaction without chain id is valid on any network. Its signed hash differs.
    let unprotected = Transaction { v: 27, ..tx.clone() };
    assert_eq!(unprotected.recover_sender(30), unprotected.recover_sender(31));
    assert_ne!(unprotected.recover_sender(1), tx.recover_sender(1));
}

#[test]
fn transactions_that_break_a_rule_are_refused() {
    let items: StringItems =
        vec![vec![1], vec![0], vec![2, 0], vec![3; 20], vec![], vec![5], vec![27], vec![6], vec![7]];
    let tx = Transaction::decode(&list_of(&items)).unwrap();
    assert_eq!(tx.encode(), list_of(&items));
    let length = |expected, found| FieldRule::Length { expected, found };
    let cases: Vec<(usize, Vec<u8>, &'static str, FieldRule)> = vec![
        (0, vec![0], "transaction.nonce", FieldRule::NotMinimal),
        (0, vec![1; 33], "transaction.nonce", FieldRule::TooLarge(256)),
        (1, vec![0, 5], "transaction.gasPrice", FieldRule::NotMinimal),
        (1, vec![0, 0], "transaction.gasPrice", FieldRule::NotMinimal),
        (1, vec![1; 33], "transaction.gasPrice", FieldRule::TooLarge(256)),
        (2, vec![1; 33], "transaction.gas", FieldRule::TooLarge(256)),
        (3, vec![1; 21], "transaction.to", length(20, 21)),
        (4, vec![0], "transaction.value", FieldRule::NotMinimal),
        (4, vec![1; 33], "transaction.value", FieldRule::TooLarge(256)),
        (6, vec![0], "transaction.v", FieldRule::NotMinimal),
        (6, vec![1, 0], "transaction.v", FieldRule::TooLong { limit: 1, found: 2 }),
        (7, vec![0, 1], "transaction.r", FieldRule::NotMinimal),
        (8, vec![0, 1], "transaction.s", FieldRule::NotMinimal),
        (8, vec![1; 33], "transaction.s", FieldRule::TooLarge(256)),
    ];
    for (index, bytes, field, rule) in cases {
        let mut changed = items.clone();
        changed[index] = bytes;
        assert_eq!(Transaction::decode(&list_of(&changed)), Err(FieldError { field, rule }));
    }
    for (index, bytes) in
        [(0, vec![0, 0]), (0, vec![0, 1]), (1, vec![]), (2, vec![0; 40]), (3, vec![0; 20]), (3, vec![])]
    {
        let mut changed = items.clone();
        changed[index] = bytes;
        assert_eq!(Transaction::decode(&list_of(&changed)).unwrap().encode(), list_of(&changed));
    }
    let mut tenth = items.clone();
    tenth.push(vec![]);
    let trailing = FieldError { field: "transaction", rule: FieldRule::Trailing(1) };
    assert_eq!(Transaction::decode(&list_of(&tenth)), Err(trailing));
    let missing = FieldError { field: "transaction.s", rule: FieldRule::Rlp(RlpError::InputTooShort) };
    assert_eq!(Transaction::decode(&list_of(&items[..8].to_vec())), Err(missing));
    // Typed transactions do not exist on Rootstock.
    let mut typed = vec![2];
    typed.extend(list_of(&items));
    let refused = FieldError { field: "transaction", rule: FieldRule::Rlp(RlpError::UnexpectedString) };
    assert_eq!(Transaction::decode(&typed), Err(refused));
}

#[test]
fn the_zero_address_is_a_receiver_and_not_a_creation() {
    let call = Transaction { to: Some(Address::ZERO), ..signed() };
    assert_eq!(call.contract_address(&Address::ZERO), None);
    let creation = Transaction { to: None, nonce: RawUint::minimal(U256::ZERO), ..signed() };
    let sender = address!("6ac7ea33f8831ea9dcc53393aaa88b25a785dbf0");
    let expected = address!("cd234a471b72ba2f1ccf0a70fcaba648a5eecd8d");
    assert_eq!(creation.contract_address(&sender), Some(expected));
    // The contract address depends on the value of the nonce, not on its byte form.
    let padded = Transaction { nonce: RawUint::padded(U256::ZERO, 4), ..creation };
    assert_eq!(padded.contract_address(&sender), Some(expected));
}

#[test]
fn all_fields_of_a_remasc_transaction_are_checked() {
    let remasc = Transaction::remasc(1234);
    assert_eq!(
        remasc.encode(),
        hex::decode("df8204d100009400000000000000000000000000000000010000088080808080").unwrap()
    );
    assert!(remasc.is_remasc());
    assert_eq!(remasc.recover_sender(30), Ok(Address::ZERO));
    let one = U256::from(1);
    for other in [
        Transaction { to: Some(Address::ZERO), ..remasc.clone() },
        Transaction { to: None, ..remasc.clone() },
        Transaction { value: one, ..remasc.clone() },
        Transaction { gas_price: one.into(), ..remasc.clone() },
        Transaction { gas_limit: one.into(), ..remasc.clone() },
        Transaction { data: Bytes::from(vec![0]), ..remasc.clone() },
        Transaction { v: 27, ..remasc.clone() },
        Transaction { r: one, ..remasc.clone() },
        Transaction { s: one, ..remasc.clone() },
    ] {
        assert!(!other.is_remasc());
        assert!(other.recover_sender(30).is_err());
    }
}

#[test]
fn numbers_keep_their_byte_length() {
    assert_eq!(SignedUint::new(U256::ZERO), SignedUint::padded(U256::ZERO, 0));
    assert_ne!(SignedUint::new(U256::ZERO), SignedUint::ABSENT);
    for (value, len) in [(0u64, 1), (0x7f, 1), (0x80, 2), (0x7fff, 2), (0x8000, 3)] {
        assert_eq!(RawUint::signed_minimal(U256::from(value)).len(), len);
    }
    assert_eq!(RawUint::signed_minimal(U256::MAX).len(), 33);
    assert_eq!(RawUint::padded(U256::from(0x1234), 1), RawUint::minimal(U256::from(0x1234)));
    let mut out = Vec::new();
    RawUint::padded(U256::from(5), 35).put(&mut out);
    assert_eq!(out, string(&[vec![0; 34], vec![5]].concat()));
}

#[test]
fn blocks_are_lists_of_three_items() {
    let header = list_of(&header_items());
    let at = |_| v2();
    let block = |payload: &[Vec<u8>]| Block::decode(&list(&payload.concat()), &at);
    assert!(block(&[header.clone(), list(&[]), list(&[])]).is_ok());
    assert!(block(&[header.clone(), list(&[]), list(&header)]).is_ok());
    let trailing = || HeaderError::Field(FieldError { field: "block", rule: FieldRule::Trailing(1) });
    assert_eq!(block(&[header.clone(), list(&[]), list(&[]), vec![1]]), Err(trailing()));
    let short = HeaderError::Field(FieldError {
        field: "block.uncles",
        rule: FieldRule::Rlp(RlpError::InputTooShort),
    });
    assert_eq!(block(&[header.clone(), list(&[])]), Err(short));
    assert!(block(&[header, list(&string(&[1; 60])), list(&[])]).is_err());
}
