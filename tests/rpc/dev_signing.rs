//! Signatures by the accounts of a development chain.

use crate::support::dev::DevClient;
use serde_json::{Value, json};

const ALICE: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";

fn note(kind: &str, text: Value) -> Value {
    json!({
        "types": {"EIP712Domain": [{"name": "name", "type": "string"}], "Note": [{"name": "text", "type": kind}]},
        "primaryType": "Note",
        "domain": {"name": "Notes"},
        "message": {"text": text},
    })
}

#[test]
fn a_message_has_one_signature_whatever_method_signs_it() {
    let mut dev = DevClient::instant();
    let signature = dev.get("eth_sign", json!([ALICE, "0x68656c6c6f"]));
    assert_eq!(dev.get("personal_sign", json!(["0x68656c6c6f", ALICE])), signature);
    for absent in [json!(""), Value::Null] {
        assert_eq!(dev.get("personal_sign", json!(["0x68656c6c6f", ALICE, absent])), signature);
    }
    // Of ethers' `new Wallet(key).signMessage('hello')`.
    let ethers = "0xf16ea9a3478698f695fd1401bfe27e9e4a7e8e3da94aa72b021125e31fa899cc573c48ea3fe1d4ab61a9db10c19032026e3ed2dbccba5a178235ac27f94504311c";
    assert_eq!(signature, json!(ethers));
    assert_eq!(dev.get("personal_ecRecover", json!(["0x68656c6c6f", signature])), json!(ALICE));
}

#[test]
fn a_signature_of_another_message_or_form_gives_no_account_that_signed() {
    let mut dev = DevClient::instant();
    let signature = dev.get("eth_sign", json!([ALICE, "0x01"]));
    assert_ne!(dev.get("personal_ecRecover", json!(["0x02", signature])), json!(ALICE));
    let text = signature.as_str().unwrap();
    let (start, r) = (&text[..130], &text[2..66]);
    for wrong in [
        format!("{start}1a"),
        format!("{start}1d"),
        format!("{start}00"),
        start.into(),
        format!("{text}00"),
        format!("0x{}{r}1b", "00".repeat(32)),
        format!("0x{r}{}1b", "ff".repeat(32)),
        "0x".into(),
    ] {
        let (code, message) = dev.refused("personal_ecRecover", json!(["0x01", wrong]));
        assert!(code == -32602 && message.contains("v, which is 27 or 28"), "{wrong}: {message}");
    }
}

#[test]
fn a_locked_account_signs_with_its_passphrase() {
    let mut dev = DevClient::instant();
    let account = dev.get("personal_newAccount", json!(["secret"]));
    let signature = dev.get("personal_sign", json!(["0x01", account]));
    dev.get("personal_lockAccount", json!([account]));
    assert_eq!(dev.refused("personal_sign", json!(["0x01", account])).0, -32602);
    assert_eq!(dev.refused("personal_sign", json!(["0x01", account, "wrong"])).0, -32602);
    assert_eq!(dev.get("personal_sign", json!(["0x01", account, "secret"])), signature);
    assert_eq!(dev.refused("eth_sign", json!([account, "0x01"])).0, -32602, "it stays locked");
}

/// Text counts milliseconds, as in the reference node; a JSON integer seconds, as in geth.
#[test]
fn an_account_is_unlocked_for_milliseconds_or_seconds() {
    let mut dev = DevClient::instant();
    let account = dev.get("personal_newAccount", json!(["secret"]));
    for duration in [json!("0x7d0"), json!(2)] {
        dev.get("personal_lockAccount", json!([account]));
        assert_eq!(dev.get("personal_unlockAccount", json!([account, "secret", duration])), json!(true));
        dev.now += 1;
        dev.get("eth_sign", json!([account, "0x01"]));
        dev.now += 2;
        assert_eq!(dev.refused("eth_sign", json!([account, "0x01"])).0, -32602, "{duration}");
    }
    for duration in [json!(-1), json!([2]), json!(1.5)] {
        assert_eq!(dev.refused("personal_unlockAccount", json!([account, "secret", duration])).0, -32602);
    }
}

#[test]
fn typed_data_is_taken_as_an_object_and_as_text() {
    let mut dev = DevClient::instant();
    let data = note("string", json!("a"));
    let signature = dev.get("eth_signTypedData_v4", json!([ALICE, data]));
    assert_eq!(dev.get("eth_signTypedData_v4", json!([ALICE, data.to_string()])), signature);
    assert_eq!(dev.get("eth_signTypedData", json!([ALICE, data])), signature);
    let other = note("string", json!("b"));
    assert_ne!(dev.get("eth_signTypedData_v4", json!([ALICE, other])), signature);
}

#[test]
fn what_cannot_be_signed_is_refused_as_an_invalid_parameter() {
    let mut dev = DevClient::instant();
    let stranger = "0x00000000000000000000000000000000000abcde";
    for (method, params) in [
        ("personal_sign", json!([ALICE, "0x01"])),
        ("personal_sign", json!(["text", ALICE])),
        ("personal_sign", json!(["0x01"])),
        ("personal_sign", json!(["0x01", stranger])),
        ("eth_signTypedData_v4", json!([stranger, note("string", json!("a"))])),
        ("eth_signTypedData_v4", json!([note("string", json!("a")), ALICE])),
        ("eth_signTypedData_v4", json!([ALICE])),
        ("eth_signTypedData_v4", json!([ALICE, "text"])),
        ("eth_signTypedData_v4", json!([ALICE, [{"type": "string", "name": "text", "value": "a"}]])),
        ("eth_signTypedData_v4", json!([ALICE, note("text", json!("a"))])),
        ("eth_signTypedData_v4", json!([ALICE, note("uint8", json!(256))])),
        ("eth_signTypedData_v4", json!([ALICE, note("bytes32", json!("0x01"))])),
    ] {
        assert_eq!(dev.refused(method, params.clone()).0, -32602, "{method} {params}");
    }
    let secret = "s".repeat(100_000);
    let (_, text) = dev.refused("eth_signTypedData_v4", json!([ALICE, note(&secret, json!(secret))]));
    assert!(text.len() < 200, "{}", text.len());
}
