//! Answers that prove nothing, and what is said of them.

use alloc::{boxed::Box, string::ToString};

use alloy_primitives::{Address, B256, U256};
use serde_json::value::RawValue;

use super::{
    fact::Fact,
    prove::{account_proof, location},
    task::{Cause, Task, Wanted},
    upstream::{Answer, CallFailure},
};

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_string()).unwrap()
}

/// Nobody can prove absence by an empty list; nodes that do not fit are wrong.
#[test]
fn an_empty_proof_is_not_a_wrong_one() {
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

/// "Nowhere" is only believed of an upstream that says so in both ways of asking.
#[test]
fn a_transaction_is_nowhere_when_both_ways_of_asking_say_so() {
    let hash = B256::repeat_byte(5);
    let null: fn() -> Answer = || Ok(raw("null"));
    let unrecorded: fn() -> Answer = || Err(CallFailure::NotRecorded);
    for first in [null, unrecorded] {
        for second in [null, unrecorded] {
            let mut task = Task::new(Wanted::One(Fact::Location(hash)), &[]);
            task.answer(0, first());
            let cause = location(&task, hash, 33).unwrap_err();
            let denied = cause == Cause::Denied;
            assert_eq!(denied, first().is_ok(), "one way of asking never decides");
            task.next_attempt(cause, &[]).unwrap();
            task.answer(0, second());
            assert_eq!(location(&task, hash, 33).is_ok(), denied, "{:?}", location(&task, hash, 33));
        }
    }
}
