//! Responses that do not prove a fact, and the causes they give.

use alloc::{boxed::Box, string::ToString};

use alloy_primitives::{Address, B256, U256};
use serde_json::value::RawValue;

use super::{
    prove::{account_proof, location, raw_header},
    upstream::{RequestFailure, UpstreamResponse},
    upstream_fetch::{Cause, FetchTarget, UpstreamFetch},
};
use crate::{
    consensus::Network,
    state::{Fact, StateKey},
    trie::limits::MAX_MULTIPROOF_NODES,
    types::BlockRef,
};

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_string()).unwrap()
}

/// An empty list cannot prove absence, but is not wrong. Nodes that do not fit are wrong.
#[test]
fn an_empty_proof_is_not_a_wrong_proof() {
    let prove = |json: &str| {
        let slots = [U256::ZERO];
        account_proof(&raw(json), B256::repeat_byte(7), &Address::ZERO, &slots).unwrap_err()
    };
    for empty in [
        r#"{"accountProof":[]}"#,
        r#"{"accountProof":[],"storageProof":[{"proof":[]}]}"#,
        r#"{"accountProof":["0x01"],"storageProof":[{"proof":[]}]}"#,
    ] {
        assert!(matches!(prove(empty), Cause::NoAbsence(_)), "{empty}");
    }
    for wrong in [
        r#"{"accountProof":["0x01"],"storageProof":[]}"#,
        r#"{"accountProof":["0x01"],"storageProof":[{"proof":["0x02"]}]}"#,
        r#"{"accountProof":["0x0"]}"#,
        "{}",
    ] {
        assert!(matches!(prove(wrong), Cause::Refuted(_)), "{wrong}");
    }
    assert_eq!(prove("null"), Cause::Withheld);
}

/// The message of the JSON reader would quote a string that stands where an object is expected.
#[test]
fn causes_do_not_quote_the_json_of_an_upstream() {
    let prove =
        |json: &str| account_proof(&raw(json), B256::ZERO, &Address::ZERO, &[]).unwrap_err().to_string();
    for quoting in [r#""words""#, r#"{"accountProof":[],"storageProof":["words"]}"#] {
        let text = prove(quoting);
        assert!(text.contains("unexpected JSON") && !text.contains("words"), "{text}");
    }
    let network = Network::regtest();
    let text = raw_header(r#""00""#, r#""words""#, &network).unwrap_err().to_string();
    assert!(text.contains("unexpected JSON") && !text.contains("words"), "{text}");
}

/// Members of three bytes would take ten times their text when decoded, so they are counted first.
#[test]
fn a_proof_of_too_many_nodes_is_refused_while_it_is_read() {
    let prove = |json: &str| {
        let slots = [U256::ZERO];
        account_proof(&raw(json), B256::repeat_byte(7), &Address::ZERO, &slots).unwrap_err()
    };
    let many = |member: &str| alloc::vec![member; MAX_MULTIPROOF_NODES + 1].join(",");
    for json in [
        alloc::format!(r#"{{"accountProof":[{}]}}"#, many(r#""""#)),
        alloc::format!(r#"{{"accountProof":[],"storageProof":[{}]}}"#, many("{}")),
        alloc::format!(r#"{{"accountProof":[],"storageProof":[{{"proof":[{}]}}]}}"#, many(r#""""#)),
    ] {
        let expected = alloc::format!("more than {MAX_MULTIPROOF_NODES} nodes");
        assert_eq!(prove(&json), Cause::Refuted(expected));
    }
}

/// A block off the chain is requested by its hash first. Only if the request names the block by its hash is a wrong
/// proof a fault.
#[test]
fn a_wrong_proof_is_a_fault_if_the_request_named_the_block_by_its_hash() {
    let block = BlockRef { number: 7, hash: B256::repeat_byte(9) };
    // A slot whose number looks like the hash does not name the block.
    let proof = FetchTarget::Proof {
        block,
        address: Address::ZERO,
        slots: alloc::vec![U256::from_be_bytes(block.hash.0)],
    };
    let code = FetchTarget::One(Fact::State(block, StateKey::Code(Address::ZERO)));
    let body = FetchTarget::One(Fact::Body(block));
    for (target, by_hash) in [
        (proof.clone(), false),
        (proof, true),
        (code.clone(), false),
        (code, true),
        (body.clone(), false),
        (body, true),
    ] {
        let mut fetch = UpstreamFetch::ordered(target.clone(), &[], by_hash);
        let mut ways = alloc::vec![];
        loop {
            let [request] = fetch.requests() else { panic!("{:?}", fetch.requests()) };
            let fault = fetch.blame(Cause::Refuted("wrong".into())) == Cause::Refuted("wrong".into());
            ways.push((request.method, fault));
            let hash = alloc::format!("{}", block.hash);
            let named = request.params.trim_end_matches(['"', '}', ']']).ends_with(&hash)
                || request.params.starts_with(&alloc::format!("[\"{hash}"));
            assert_eq!(fault, named, "{request:?}");
            if fetch.next_attempt(Cause::Withheld, &[]).is_err() {
                break;
            }
        }
        let faults = ways.iter().filter(|(_, fault)| *fault).count();
        let first = ways.first().is_some_and(|(_, fault)| *fault);
        assert_eq!((faults, first), (1, by_hash), "{target:?} {ways:?}");
        assert_eq!(ways.len(), if matches!(target, FetchTarget::Proof { .. }) { 3 } else { 2 });
    }
    // On another branch the transaction may be in another block.
    let receipts = UpstreamFetch::ordered(FetchTarget::One(Fact::Receipts(block)), &[block.hash], false);
    assert!(matches!(receipts.blame(Cause::Refuted("wrong".into())), Cause::OtherBranch(_)));
}

/// "Nowhere" is accepted only if the upstream says so to both forms of the request.
#[test]
fn a_transaction_is_nowhere_if_both_forms_of_the_request_say_so() {
    let hash = B256::repeat_byte(5);
    let null: fn() -> UpstreamResponse = || Ok(raw("null"));
    let unrecorded: fn() -> UpstreamResponse = || Err(RequestFailure::NotRecorded);
    for first in [null, unrecorded] {
        for second in [null, unrecorded] {
            let mut fetch = UpstreamFetch::new(FetchTarget::One(Fact::Location(hash)));
            fetch.take_response(0, first());
            let cause = location(&fetch, hash, 9, 33).unwrap_err();
            let denied = cause == Cause::Denied;
            assert_eq!(denied, first().is_ok(), "one form of the request never decides");
            fetch.next_attempt(cause, &[]).unwrap();
            fetch.take_response(0, second());
            assert_eq!(location(&fetch, hash, 9, 33).is_ok(), denied, "{:?}", location(&fetch, hash, 9, 33));
        }
    }
}
