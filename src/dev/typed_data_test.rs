//! Hashes of typed data: EIP-712's example, values of every type, and what is refused.

use alloc::format;
use alloc::string::{String, ToString};

use alloy_primitives::{B256, b256, hex};
use serde_json::{Value, json};

use super::{MAX_DEPTH, MAX_TEXT, TypedDataError, digest};
use crate::dev::PrivateKey;

/// The example of EIP-712.
fn mail() -> Value {
    json!({
        "types": {
            "EIP712Domain": [
                {"name": "name", "type": "string"},
                {"name": "version", "type": "string"},
                {"name": "chainId", "type": "uint256"},
                {"name": "verifyingContract", "type": "address"},
            ],
            "Person": [{"name": "name", "type": "string"}, {"name": "wallet", "type": "address"}],
            "Mail": [
                {"name": "from", "type": "Person"},
                {"name": "to", "type": "Person"},
                {"name": "contents", "type": "string"},
            ],
        },
        "primaryType": "Mail",
        "domain": {
            "name": "Ether Mail",
            "version": "1",
            "chainId": 1,
            "verifyingContract": "0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC",
        },
        "message": {
            "from": {"name": "Cow", "wallet": "0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD826"},
            "to": {"name": "Bob", "wallet": "0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB"},
            "contents": "Hello, Bob!",
        },
    })
}

const MAIL: B256 = b256!("be609aee343fb3c4b28e1df9e632fca64fcfaede20f02e86244efddf30957bd2");

fn of(data: &Value) -> Result<B256, TypedDataError> {
    digest(&data.to_string())
}

fn one(kind: &str, value: Value) -> Value {
    let types = json!({"Note": [{"name": "field", "type": kind}]});
    json!({"types": types, "primaryType": "Note", "domain": {}, "message": {"field": value}})
}

#[test]
fn the_example_of_eip_712_has_its_hash_and_signature() {
    assert_eq!(of(&mail()), Ok(MAIL));
    let key = PrivateKey::from_seed("cow").unwrap();
    let signature = key.sign_typed_data(&mail().to_string()).unwrap().unwrap();
    assert_eq!(
        hex::encode(signature),
        "4355c47d63924e8a72e509b65029052eb6c299d53a04e167c5775fd466751c9d\
         07299936d304c153f6443dfa05f40ff007d72911b6f72307f996231605b915621c"
    );
}

#[test]
fn the_type_of_the_domain_follows_from_its_members_if_it_is_not_given() {
    let mut data = mail();
    data["types"].as_object_mut().unwrap().remove("EIP712Domain");
    assert_eq!(of(&data), Ok(MAIL));
    data["domain"]["salt"] = json!(format!("0x{}", "11".repeat(32)));
    assert_ne!(of(&data).unwrap(), MAIL);
    data["domain"]["salt"] = json!("0x11");
    assert!(matches!(of(&data), Err(TypedDataError::Value { .. })));
}

#[test]
fn members_without_a_field_change_nothing_and_fields_without_a_member_are_refused() {
    let mut data = mail();
    data["message"]["more"] = json!(1);
    assert_eq!(of(&data), Ok(MAIL));
    data["message"].as_object_mut().unwrap().remove("contents");
    let refused = TypedDataError::Value { field: "contents".into(), kind: "string".into() };
    assert_eq!(of(&data), Err(refused));
}

/// Each row has forms of one value, which have one hash, and values that are not of the type.
#[test]
fn values_are_of_their_types() {
    let word = format!("0x{}", "ab".repeat(32));
    let rows = [
        (
            "uint8",
            json!([255, "255", "0xff", "0xFF"]),
            json!([256, -1, "0x100", "", "0x", "1.0", 1.5, true, null, [1]]),
        ),
        (
            "uint256",
            json!([5, "5", "0x5", "0x05"]),
            json!([format!("0x1{}", "0".repeat(64)), "-1", "5 ", "+5", "1e3", "a"]),
        ),
        ("uint", json!([5, "0x5"]), json!([-5])),
        ("int8", json!([-128, "-128", "-0x80"]), json!([128, -129, "--1", "0x-1"])),
        (
            "int256",
            json!(["-1", -1]),
            json!([format!("0x8{}", "0".repeat(63)), format!("0x{}", "f".repeat(64))]),
        ),
        ("bool", json!([true]), json!(["true", 1, null])),
        (
            "address",
            json!([format!("0x{}", "Ab".repeat(20)), format!("0x{}", "ab".repeat(20))]),
            json!(["ab".repeat(20), "0xab", word, 5]),
        ),
        ("bytes1", json!(["0xab", "0xAB"]), json!(["0x", "0xabcd", "ab", 171])),
        ("bytes32", json!([word]), json!([format!("{word}ab"), "0xab"])),
        ("bytes", json!(["0xabcd"]), json!(["0xabc", "abcd", "text", 1])),
        ("string", json!(["text"]), json!([1, null, {}])),
        ("uint8[]", json!([[1, 2], ["0x1", "2"]]), json!([1, [256], {}, null, "0x0102"])),
        ("uint8[2]", json!([[1, 2]]), json!([[1], [1, 2, 3], []])),
        ("uint8[2][]", json!([[[1, 2], [3, 4]]]), json!([[1, 2], [[1, 2], [3]]])),
        ("uint8[][2]", json!([[[1, 2, 3], []]]), json!([[[1]], [1, 2]])),
    ];
    for (kind, same, refused) in rows {
        let hashes: std::collections::BTreeSet<B256> =
            same.as_array().unwrap().iter().map(|value| of(&one(kind, value.clone())).unwrap()).collect();
        assert_eq!(hashes.len(), 1, "{kind} {same}");
        for value in refused.as_array().unwrap() {
            let found = of(&one(kind, value.clone()));
            assert!(matches!(found, Err(TypedDataError::Value { .. })), "{kind} {value}: {found:?}");
        }
    }
}

#[test]
fn types_that_eip_712_does_not_have_are_refused() {
    for kind in [
        "uint7", "uint264", "uint08", "uint0", "int+8", "bytes0", "bytes33", "bytes01", "Address", "Other",
        "", "Other[]", "function",
    ] {
        let found = of(&one(kind, json!([])));
        assert!(matches!(found, Err(TypedDataError::Type(_))), "{kind:?}: {found:?}");
    }
    for kind in ["uint8[x]", "uint8[-1]", "uint8[", "uint8]", "[]"] {
        assert!(of(&one(kind, json!([1]))).is_err(), "{kind:?}");
    }
    let mut data = one("uint8", json!(1));
    data["types"]["uint8"] = json!([{"name": "a", "type": "bool"}]);
    assert!(of(&data).is_ok(), "the name means EIP-712's type");
    data["primaryType"] = json!("uint8");
    assert!(matches!(of(&data), Err(TypedDataError::Type(_))));
    let long = TypedDataError::Type("x".repeat(40));
    assert_eq!(of(&one(&"x".repeat(5_000), json!(1))), Err(long));
}

#[test]
fn text_that_is_not_typed_data_is_refused() {
    for text in ["", "1", "null", "[]", "{}", "x", "\u{202e}"] {
        assert_eq!(digest(text), Err(TypedDataError::Form), "{text}");
    }
    for member in ["types", "primaryType"] {
        let mut data = mail();
        data.as_object_mut().unwrap().remove(member);
        assert_eq!(of(&data), Err(TypedDataError::Form), "{member}");
    }
    for empty in [Value::Null, json!({})] {
        let mut data = mail();
        data["message"] = empty;
        let refused = of(&data).unwrap_err().to_string();
        assert!(refused.starts_with("typed data: the value of "), "{refused}");
    }
}

/// Libraries leave out a domain that is empty, and viem writes members that are not set as null.
#[test]
fn a_domain_that_is_left_out_is_empty() {
    let empty = one("uint8", json!(1));
    let mut data = empty.clone();
    data.as_object_mut().unwrap().remove("domain");
    assert_eq!(of(&data), of(&empty));
    data["domain"] = json!({"name": null, "chainId": null});
    assert_eq!(of(&data), of(&empty));
    // With its type given, its members are needed.
    data["types"]["EIP712Domain"] = json!([{"name": "name", "type": "string"}]);
    assert!(matches!(of(&data), Err(TypedDataError::Value { .. })));
}

#[test]
fn structs_refer_to_themselves_and_end_with_null() {
    let types = json!({"Node": [{"name": "value", "type": "uint8"}, {"name": "next", "type": "Node"}]});
    let list = |depth: u32| {
        let open: String = (0..depth).map(|_| r#"{"value":1,"next":"#).collect();
        format!("{open}null{}", "}".repeat(depth as usize))
    };
    let of = |depth| {
        digest(&format!(
            r#"{{"types":{types},"primaryType":"Node","domain":{{}},"message":{}}}"#,
            list(depth)
        ))
    };
    assert!(of(1).is_ok() && of(2).is_ok() && of(MAX_DEPTH).is_ok());
    assert_ne!(of(1), of(2));
    assert_eq!(of(MAX_DEPTH + 1), Err(TypedDataError::Depth));
    assert_eq!(of(20_000), Err(TypedDataError::Depth));
    assert_eq!(of(100_000), Err(TypedDataError::Long));
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let kind = format!("uint8{}", "[]".repeat(100_000));
    let data = format!(
        r#"{{"types":{{"Note":[{{"name":"field","type":"{kind}"}}]}},"primaryType":"Note","domain":{{}},"message":{{"field":{deep}}}}}"#
    );
    assert_eq!(digest(&data), Err(TypedDataError::Depth));
}

/// Each of these types refers to all others, so the descriptions together grow with the square of their number.
#[test]
fn the_descriptions_of_types_have_a_limit_together() {
    let ring = |count: u32| {
        let mut types = serde_json::Map::new();
        for one in 0..count {
            let next = (one + 1) % count;
            let fields =
                json!([{"name": "next", "type": format!("T{next}")}, {"name": "n", "type": "uint8"}]);
            types.insert(format!("T{one}"), fields);
        }
        let message = (1..count).fold(json!({"next": null, "n": 1}), |next, _| json!({"next": next, "n": 1}));
        of(&json!({"types": types, "primaryType": "T0", "domain": {}, "message": message}))
    };
    assert!(ring(20).is_ok());
    assert_eq!(ring(2_000), Err(TypedDataError::Types));
}

#[test]
fn an_array_is_no_document() {
    let data = mail();
    let members = ["types", "primaryType", "domain", "message"].map(|name| data[name].clone());
    assert_eq!(of(&json!(members)), Err(TypedDataError::Form));
}

#[test]
fn an_array_is_no_field_and_no_struct() {
    let mut data = mail();
    data["types"]["Person"][1] = json!(["wallet", "address"]);
    assert_eq!(of(&data), Err(TypedDataError::Form));
    data = mail();
    data["types"] = json!([["Person", []]]);
    assert_eq!(of(&data), Err(TypedDataError::Form));
    for (struct_of, field) in [("domain", "domain"), ("message", "message")] {
        data = mail();
        data[struct_of] = json!(["Ether Mail", "1"]);
        let found = of(&data).unwrap_err();
        assert!(matches!(&found, TypedDataError::Value { field: of, .. } if of == field), "{found}");
    }
    data = mail();
    data["message"]["from"] = json!([["name", "Cow"]]);
    assert!(matches!(of(&data), Err(TypedDataError::Value { .. })));
}

/// Small values take hundreds of nanoseconds each, and nested ones are read once for each level.
#[test]
fn long_typed_data_is_refused_before_it_is_read() {
    let of_length = |length: usize| {
        let empty = one("string", json!("")).to_string().len();
        of(&one("string", json!("x".repeat(length - empty))))
    };
    assert!(of_length(MAX_TEXT).is_ok());
    assert_eq!(of_length(MAX_TEXT + 1), Err(TypedDataError::Long));
    assert_eq!(digest(&" ".repeat(MAX_TEXT + 1)), Err(TypedDataError::Long));
}

#[test]
fn the_domain_alone_is_signed_if_it_is_the_primary_type() {
    let mut data = mail();
    data["primaryType"] = json!("EIP712Domain");
    data["message"] = json!({});
    let found = of(&data).unwrap();
    assert_ne!(found, MAIL);
    // viem and ethers send no message then.
    data.as_object_mut().unwrap().remove("message");
    assert_eq!(of(&data), Ok(found));
    data["domain"]["chainId"] = json!("0x2");
    assert_ne!(of(&data).unwrap(), found);
}
