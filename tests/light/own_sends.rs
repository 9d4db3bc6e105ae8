//! After a transaction was sent through a light client, new blocks are looked for sooner than usual, until it is in a block.

use crate::support;

use rootlight::consensus::Network;
use rootlight::light::{RequestFailure, SyncOptions, SyncStep};
use serde_json::{Value, json};
use support::{
    dev::DevClient,
    light::{ExecutedUpstream, Light},
};

const ALICE: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const HOUR: u64 = 3_600_000;

/// The pauses after a send, in milliseconds: each is twice the one before, up to the usual one.
const PAUSES: [u64; 17] = [
    50, 100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 102_400, 204_800, 409_600, 819_200,
    1_638_400, 3_276_800,
];

/// A chain that mines a block for each transaction, and a client of it that looks for new blocks once an hour.
fn start() -> (DevClient, Light) {
    let dev = DevClient::instant();
    let upstream = ExecutedUpstream::new(dev.client.snapshot());
    let options = SyncOptions { poll: HOUR, ..SyncOptions::default() };
    (dev, Light::with_options(Network::regtest(), upstream, options))
}

fn signed(dev: &mut DevClient, nonce: u64) -> Value {
    let nonce = format!("{nonce:#x}");
    let fields = json!([{"from": ALICE, "to": ALICE, "value": "0x1", "gas": "0x5208", "gasPrice": "0x3b9aca00",
        "nonce": nonce}]);
    let signed = dev.get("eth_signTransaction", fields);
    signed.get("raw").cloned().unwrap_or(signed)
}

/// Sends a transaction through the client; the chain takes it, and mines it if `mined`.
fn send(dev: &mut DevClient, light: &mut Light, nonce: u64, mined: bool) -> Value {
    let raw = signed(dev, nonce);
    let hash = format!("{}", alloy_primitives::keccak256(support::bytes(raw.as_str().unwrap())));
    let taken = serde_json::value::to_raw_value(&hash).unwrap();
    light.upstream.change = Some(Box::new(move |call, answer| match call.method {
        "eth_sendRawTransaction" => Ok(taken.clone()),
        _ => answer,
    }));
    assert_eq!(light.call("eth_sendRawTransaction", &json!([raw])), Ok(json!(hash)));
    if mined {
        dev.get("eth_sendRawTransaction", json!([raw]));
        light.upstream.chain = dev.client.snapshot();
    }
    json!(hash)
}

/// The pause after the check that is due now, which there must be.
fn checked(light: &mut Light) -> u64 {
    assert!(matches!(light.next(), SyncStep::Fetch(_)), "no check is due");
    light.turn()
}

#[test]
fn the_block_of_an_own_transaction_is_looked_for_at_once() {
    let (mut dev, mut light) = start();
    assert_eq!(light.turn(), HOUR);
    let hash = send(&mut dev, &mut light, 0, true);
    assert_eq!(checked(&mut light), PAUSES[0]);
    let receipt = light.call("eth_getTransactionReceipt", &json!([hash])).unwrap();
    assert_eq!(receipt["blockNumber"], "0x1");
    // The receipt ends the search: the check that is due is the last one before the usual pause.
    light.wait(PAUSES[0]);
    assert_eq!(checked(&mut light), HOUR);
    // The next transaction begins another one.
    send(&mut dev, &mut light, 1, true);
    assert_eq!(checked(&mut light), PAUSES[0]);
}

#[test]
fn a_transaction_that_is_not_mined_is_looked_for_less_and_less() {
    let (mut dev, mut light) = start();
    let hash = send(&mut dev, &mut light, 0, false);
    for (number, pause) in PAUSES.into_iter().enumerate() {
        assert_eq!(checked(&mut light), pause);
        // Neither a further transaction nor a question about one makes the checks more frequent or ends them.
        if number == 5 {
            send(&mut dev, &mut light, 1, false);
            assert_eq!(light.call("eth_getTransactionReceipt", &json!([hash])), Ok(Value::Null));
        }
        light.wait(pause - 1);
        assert!(matches!(light.next(), SyncStep::Wait(1)));
        light.wait(1);
    }
    assert_eq!(checked(&mut light), HOUR);
}

#[test]
fn a_transaction_that_no_upstream_took_is_not_looked_for() {
    let (mut dev, mut light) = start();
    let raw = signed(&mut dev, 0);
    light.upstream.change = Some(Box::new(|call, answer| match call.method {
        "eth_sendRawTransaction" => Err(RequestFailure::Rpc { code: -32010, message: "refused".into() }),
        _ => answer,
    }));
    light.call("eth_sendRawTransaction", &json!([raw])).unwrap_err();
    assert_eq!(light.turn(), HOUR);
}
