//! The methods about banned addresses and the reputation of upstreams.

use std::sync::Arc;

use rootlight::engine::HostInput;
use rootlight::rpc::{Caller, MessageProgress};
use rootlight::types::B256;
use rootlight_server::methods::Profile;
use serde_json::{Value, json};

use crate::fixture::Fixture;
use crate::served;
use crate::support::{recording::text_of, shared};

#[test]
fn addresses_are_banned_until_they_are_unbanned() {
    let mut dev = served(Fixture::new().dev);
    for address in ["192.0.2.0/24", "2001:db8::1"] {
        assert_eq!(dev.get("sco_banAddress", json!([address])), Value::Null);
    }
    assert_eq!(dev.get("sco_bannedAddresses", json!([])), json!(["2001:db8::1", "192.0.2.0/24"]));
    dev.get("sco_unbanAddress", json!(["2001:db8::1"]));
    assert_eq!(dev.get("sco_bannedAddresses", json!([])), json!(["192.0.2.0/24"]));
    for address in ["127.0.0.1", "localhost", "192.0.2.0/33", "x"] {
        let refused = (-32602, format!("invalid banned address {address}"));
        assert_eq!(dev.refused("sco_banAddress", json!([address])), refused);
        assert_eq!(dev.refused("sco_unbanAddress", json!([address])), refused);
    }
    dev.get("sco_unbanAddress", json!(["192.0.2.0/24"]));
    assert_eq!(dev.get("sco_bannedAddresses", json!([])), json!([]));
    // A recorded answer of the reference node, in the order of its fields.
    let summary = dev.get("sco_reputationSummary", json!([]));
    assert_eq!((summary["count"].clone(), summary.as_object().unwrap().len()), (json!(0), 17));
    assert_eq!(dev.get("sco_peerList", json!([])), json!([]));
}

/// The recorded session of a reference node without peers.
#[test]
fn recorded_bans_have_the_answers_of_the_reference() {
    let Some(shared) = shared() else { return };
    let mut dev = served(Fixture::new().dev);
    let mut compared = 0;
    for line in text_of(&shared.join("vectors/chain/rpc_misc.jsonl")).lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let method = line["request"]["method"].as_str().unwrap_or_default();
        if !method.starts_with("sco_") || method == "sco_clearPeerScoring" {
            continue;
        }
        let params = line["request"]["params"].clone();
        let answer = dev.ask(method, params.clone());
        assert_eq!(answer["result"], line["response"]["result"], "{method} {params}");
        assert_eq!(answer["error"]["code"], line["response"]["error"]["code"], "{method} {params}");
        // A missing parameter has one text, whether it is null or not given.
        if params != json!([null]) {
            assert_eq!(answer["error"], line["response"]["error"], "{method} {params}");
        }
        compared += 1;
    }
    assert_eq!(compared, 13);
}

/// For everyone else the methods do not exist, under both profiles.
#[test]
fn only_the_operator_may_ban_and_see_reputations() {
    let mut dev = served(Fixture::new().dev);
    let page = || Caller::new(1, 1).from_foreign_page(Some("https://evil.example".into()), 1);
    let guest = || Caller::new(1, 1).with_operator(false);
    let mut ask = |caller: Caller, method: &str| -> Value {
        let params = if method.ends_with("Address") { json!(["192.0.2.7"]) } else { json!([]) };
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let message =
            MessageProgress::read_from(&dev.client.dispatcher(), Arc::new(caller), message.as_bytes());
        let host_input = HostInput { now: dev.now, entropy: B256::ZERO };
        serde_json::from_str(&dev.client.answer(message, host_input, &|| false).into_text().unwrap()).unwrap()
    };
    for method in
        ["sco_banAddress", "sco_unbanAddress", "sco_bannedAddresses", "sco_peerList", "sco_reputationSummary"]
    {
        let text = format!("the method {method} does not exist/is not available");
        for caller in [
            page(),
            guest(),
            page().with_operator(false),
            guest().with_selection(Profile::Hosted.selection(false)),
        ] {
            assert_eq!(ask(caller, method)["error"], json!({"code": -32601, "message": text}));
        }
        let operator = Caller::new(1, 1).with_selection(Profile::Hosted.selection(false));
        assert!(ask(operator, method).get("result").is_some(), "{method}");
    }
    assert_eq!(dev.get("sco_bannedAddresses", json!([])), json!([]), "the operator has ended the ban");
}
