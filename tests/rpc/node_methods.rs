//! Methods that browsers do not have, and the settings of calls and sends.

use crate::fixture::{ALICE, BOB, Fixture, NOBODY, REVERTS};
use crate::support::dev::DevClient;
use rootlight::consensus::Network;
use rootlight::dev::{DevAccounts, DevConfig, Mining};
use rootlight::exec::CallPolicy;
use rootlight::types::block::encode_block;
use rootlight::types::{B256, Block, BlockBody, Transaction, U256};
use serde_json::{Value, json};

/// The answer that a reference node with the same empty Bridge has given.
#[test]
fn the_bridge_of_a_new_chain_has_no_bitcoin_blocks_and_no_peg_outs() {
    let state = Fixture::new().dev.get("eth_bridgeState", json!([]));
    assert_eq!(state, json!({"btcBlockchainBestChainHeight": 0, "rskTxsWaitingForSignatures": []}));
}

#[test]
fn an_access_list_has_the_cells_and_accounts_that_a_call_touches() {
    let mut fixture = Fixture::new();
    let contract = fixture.contract.clone();
    let word = |number: u8| json!(format!("{}", B256::left_padding_from(&[number])));
    let list = fixture.dev.get("eth_createAccessList", json!([{"from": BOB, "to": contract}]));
    assert_eq!(list["accessList"], json!([{"address": contract, "storageKeys": [word(0)]}]));
    assert!(list.get("error").is_none());
    let gas = fixture.dev.number("eth_estimateGas", json!([{"from": BOB, "to": contract}]));
    assert_eq!(list["gasUsed"], json!(format!("{gas:#x}")), "a repeated write has no refund");

    // Reads slots 3 and 2 of itself and a balance, calls the contract and a precompile, then reverts.
    let address = contract.as_str().unwrap().trim_start_matches("0x");
    let callee = format!("6000600060006000600073{address}5af1");
    let native = "6000600060006000600461fffffa";
    let balance = format!("73{}31", &NOBODY[2..]);
    let code = format!("0x600354600254{balance}{callee}{native}60006000fd");
    let params = json!([{"from": BOB, "to": ALICE}, "latest", {ALICE: {"code": code}}]);
    let list = fixture.dev.get("eth_createAccessList", params);
    let mut expected = vec![
        json!({"address": ALICE, "storageKeys": [word(2), word(3)]}),
        json!({"address": contract, "storageKeys": [word(0)]}),
        json!({"address": NOBODY, "storageKeys": []}),
    ];
    expected.sort_by_key(|entry| entry["address"].as_str().unwrap().to_owned());
    assert_eq!(list["accessList"], json!(expected), "neither the sender nor native contracts");
    assert_eq!(list["error"], json!("VM Exception while processing transaction: transaction reverted"));
    assert!(list["gasUsed"].is_string());
}

/// The contract that a creation makes is listed with its cells only.
#[test]
fn the_access_list_of_a_creation_has_the_cells_of_the_new_contract() {
    let mut fixture = Fixture::new();
    let list = fixture.dev.get("eth_createAccessList", json!([{"from": BOB, "data": "0x602a600755"}]));
    let entries = list["accessList"].as_array().unwrap();
    assert_eq!(entries.len(), 1, "{list}");
    assert_eq!(entries[0]["storageKeys"], json!([B256::left_padding_from(&[7]).to_string()]));
    let list = fixture.dev.get("eth_createAccessList", json!([{"from": BOB, "data": "0x00"}]));
    assert_eq!(list["accessList"], json!([]));
}

#[test]
fn rsk_get_proof_has_the_bare_nodes_of_eth_get_proof_from_the_leaf_up() {
    let mut fixture = Fixture::new();
    let params = json!([fixture.contract, ["0x0", "0x1"], "latest"]);
    let proof = fixture.dev.get("eth_getProof", params.clone());
    let bare = fixture.dev.get("rsk_getProof", params.clone());
    assert_eq!(bare, fixture.dev.get("ext_getProof", params));
    let turned = |nodes: &Value| -> Value {
        let unwrap = |node: &Value| {
            let bytes = hex::decode(&node.as_str().unwrap()[2..]).unwrap();
            let message = alloy_rlp::Header::decode_bytes(&mut &bytes[..], false).unwrap().to_vec();
            json!(format!("0x{}", hex::encode(message)))
        };
        nodes.as_array().unwrap().iter().rev().map(unwrap).collect()
    };
    assert_eq!(bare["accountProof"], turned(&proof["accountProof"]));
    assert_eq!(bare["storageProof"][0]["proof"], turned(&proof["storageProof"][0]["proof"]));
    assert_eq!(bare["storageProof"][1]["proof"], json!([]), "the cell does not exist");
    assert!(!proof["storageProof"][1]["proof"].as_array().unwrap().is_empty(), "eth_getProof proves it");
    for field in ["address", "balance", "codeHash", "nonce", "storageHash"] {
        assert_eq!(bare[field], proof[field], "{field}");
    }
    let nobody = fixture.dev.get("rsk_getProof", json!([NOBODY, [], "latest"]));
    assert_eq!(nobody["accountProof"], json!([]));
}

#[test]
fn the_openrpc_document_lists_the_methods_with_their_parameters() {
    let mut fixture = Fixture::new();
    let document = fixture.dev.get("rpc.discover", json!([]));
    assert_eq!(document["openrpc"], json!("1.3.2"));
    let methods = document["methods"].as_array().unwrap();
    let of = |name: &str| methods.iter().find(|method| method["name"] == json!(name)).unwrap();
    let balance = of("eth_getBalance");
    assert_eq!(balance["params"][0]["schema"], json!({"$ref": "#/components/schemas/ADDRESS"}));
    assert_eq!(
        (&balance["params"][0]["required"], &balance["params"][1]["required"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(of("evm_mine")["x-modes"]["light"]["code"], json!(-32601));
    for schema in document["components"]["schemas"].as_object().unwrap().keys() {
        assert!(document.to_string().contains(&format!("#/components/schemas/{schema}")), "{schema} is used");
    }
    for used in document.to_string().split("#/components/schemas/").skip(1) {
        let name = used.split('"').next().unwrap();
        assert!(document["components"]["schemas"].get(name).is_some(), "{name} exists");
    }
    assert_eq!(fixture.dev.refused("rpc_discover", json!([])), (-32601, "method not found".into()));
}

fn dev_with(policy: CallPolicy) -> DevClient {
    DevClient::new(DevConfig { policy, mining: Mining::Manual, ..DevConfig::new(&DevAccounts::default()) })
}

#[test]
fn the_code_of_a_revert_is_a_setting() {
    let code = json!({BOB: {"code": REVERTS}});
    for (method, code_of) in [("eth_call", 3), ("eth_estimateGas", 3), ("eth_call", -32015)] {
        let mut dev = dev_with(CallPolicy { revert_code: code_of, ..CallPolicy::default() });
        let answer = dev.ask(method, json!([{"to": BOB}, "latest", code]));
        assert_eq!(answer["error"]["code"], json!(code_of), "{method}");
        assert!(answer["error"]["data"].as_str().unwrap().starts_with("0x08c379a0"), "{method}");
    }
}

#[test]
fn state_overrides_are_refused_where_they_are_not_allowed() {
    let mut dev = dev_with(CallPolicy { overrides: false, ..CallPolicy::default() });
    let refused = (-32602, "State override is not allowed".to_owned());
    for method in ["eth_call", "eth_estimateGas", "eth_createAccessList"] {
        let params = |overrides: Value| json!([{"to": BOB}, "latest", overrides]);
        assert_eq!(dev.refused(method, params(json!({BOB: {"balance": "0x1"}}))), refused, "{method}");
        dev.get(method, params(json!({})));
        dev.get(method, json!([{"to": BOB}, "latest"]));
    }
}

/// Before release 6.5.0 of the reference node.
#[test]
fn an_estimate_without_a_check_of_funds_is_that_of_the_transfer() {
    let poor = json!([{"from": NOBODY, "to": BOB, "value": "0x1", "gasPrice": "0x3938700"}]);
    let mut dev = dev_with(CallPolicy { checks_funds: false, ..CallPolicy::default() });
    assert_eq!(dev.get("eth_estimateGas", poor.clone()), json!("0x5208"));
    assert_eq!(dev_with(CallPolicy::default()).refused("eth_estimateGas", poor).0, -32000);
}

#[test]
fn a_transaction_that_reverts_has_a_hash_and_a_receipt_unless_failures_are_reported() {
    let instant = || DevConfig { mining: Mining::Instant, ..DevConfig::new(&DevAccounts::default()) };
    // Initialisation code that reverts.
    let creation = json!([{"from": BOB, "data": "0x60006000fd", "gas": "0x186a0"}]);
    for method in ["eth_sendRawTransaction", "eth_sendTransaction"] {
        let params = |dev: &mut DevClient| match method {
            "eth_sendRawTransaction" => json!([dev.get("eth_signTransaction", creation.clone())]),
            _ => creation.clone(),
        };
        let mut dev = DevClient::new(instant());
        let sent = params(&mut dev);
        let hash = dev.get(method, sent);
        assert_eq!(dev.get("eth_getTransactionReceipt", json!([hash]))["status"], json!("0x0"), "{method}");

        let mut dev = DevClient::new(DevConfig { report_reverts: true, ..instant() });
        let sent = params(&mut dev);
        let (code, text) = dev.refused(method, sent);
        assert_eq!(
            (code, text.as_str()),
            (-32015, "VM Exception while processing transaction: transaction reverted")
        );
    }
}

#[test]
fn cells_of_several_contracts_come_in_one_answer() {
    let mut fixture = Fixture::new();
    let contract = fixture.contract.as_str().unwrap().to_owned();
    let word = |number: u8| format!("{}", B256::left_padding_from(&[number]));
    let cells = json!({(contract.clone()): ["0x0", word(1), "0x0"], NOBODY: ["0x5"], BOB: []});
    let values = fixture.dev.get("eth_getStorageValues", json!([cells, "latest"]));
    assert_eq!(
        values,
        json!({(contract.clone()): [word(42), word(0), word(42)], NOBODY: [word(0)], BOB: []})
    );
    assert_eq!(fixture.dev.get("eth_getStorageValues", json!([cells, "0x0"]))[&contract][0], word(0));
    assert_eq!(fixture.dev.get("eth_getStorageValues", json!([{}])), json!({}));
    let slots = |count: usize| json!([{NOBODY: vec!["0x0"; count], BOB: ["0x0"]}]);
    fixture.dev.get("eth_getStorageValues", slots(1_023));
    let (code, text) = fixture.dev.refused("eth_getStorageValues", slots(1_024));
    assert_eq!((code, text.contains("at most 1024")), (-32602, true), "{text}");
    // A contract without slots counts as one slot.
    let contracts = |count: u32| {
        let addresses = (1..=count).map(|number| (format!("0x{number:040x}"), json!([])));
        json!([addresses.collect::<serde_json::Map<_, _>>()])
    };
    fixture.dev.get("eth_getStorageValues", contracts(1_024));
    assert_eq!(fixture.dev.refused("eth_getStorageValues", contracts(1_025)).0, -32602);
    // The length of the text counts, blanks included.
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"eth_getStorageValues","params":[{ROOM}]}"#;
    for (bytes, is_read) in [((256 << 10) - 2, true), ((256 << 10) - 1, false)] {
        let answer = fixture.dev.send(&call.replace("ROOM", &" ".repeat(bytes)));
        assert_eq!(answer["error"].is_null(), is_read, "{bytes}: {}", answer["error"]);
    }
    for wrong in
        [json!(null), json!([]), json!({"0x12": []}), json!({NOBODY: "0x0"}), json!({NOBODY: ["zz"]})]
    {
        assert_eq!(fixture.dev.refused("eth_getStorageValues", json!([wrong])).0, -32602, "{wrong}");
    }
}

#[test]
fn a_transaction_is_filled_with_what_its_sender_has_left_out() {
    let mut fixture = Fixture::new();
    let contract = fixture.contract.clone();
    let object = json!({"from": ALICE, "to": contract, "value": "0x0", "data": "0x01"});
    let filled = fixture.dev.get("eth_fillTransaction", json!([object]));
    let tx = &filled["tx"];
    assert_eq!(tx["gas"], fixture.dev.get("eth_estimateGas", json!([object])));
    assert_eq!(tx["gasPrice"], fixture.dev.get("eth_gasPrice", json!([])));
    assert_eq!(tx["nonce"], fixture.dev.get("eth_getTransactionCount", json!([ALICE, "pending"])));
    assert_eq!((&tx["from"], &tx["to"], &tx["input"]), (&json!(ALICE), &contract, &json!("0x01")));

    // `raw` is the preimage of the sender's signature: the node signs the hash of the same bytes.
    let raw = hex::decode(&filled["raw"].as_str().unwrap()[2..]).unwrap();
    let signed = fixture.dev.get(
        "eth_signTransaction",
        json!([{"from": ALICE, "to": contract, "data": "0x01", "gas": tx["gas"], "gasPrice": tx["gasPrice"], "nonce": tx["nonce"]}]),
    );
    let signed = hex::decode(&signed.as_str().unwrap()[2..]).unwrap();
    let signed = Transaction::decode(&signed).unwrap();
    let unsigned = Transaction { v: 33, r: U256::ZERO, s: U256::ZERO, ..signed.clone() };
    assert_eq!(unsigned.encode(), raw);
    assert_eq!(signed.recover_sender(33).unwrap().to_string().to_lowercase(), ALICE);

    // Given fields stay as they are, and cost no run.
    let given = json!({"to": BOB, "gas": "0x5208", "gasPrice": "0x7", "nonce": "0x9", "chainId": "0x21"});
    let tx = fixture.dev.get("eth_fillTransaction", json!([given]))["tx"].clone();
    assert_eq!((&tx["gas"], &tx["gasPrice"], &tx["nonce"]), (&json!("0x5208"), &json!("0x7"), &json!("0x9")));
    let reverting = json!([{"from": BOB, "to": NOBODY}]);
    fixture.dev.get("anvil_setCode", json!([NOBODY, REVERTS]));
    assert_eq!(fixture.dev.refused("eth_fillTransaction", reverting).0, -32015);
    assert_eq!(fixture.dev.refused("eth_fillTransaction", json!([{"to": BOB, "chainId": "0x1"}])).0, -32602);
}

/// The signature of a transaction has one byte for the chain id.
#[test]
fn a_transaction_is_not_filled_for_a_chain_id_above_one_byte() {
    let mut config = DevConfig::new(&DevAccounts::default());
    let mut network = Network::clone(&config.network);
    network.chain_id = 256;
    config.network = network.into();
    let refused = DevClient::new(config).refused("eth_fillTransaction", json!([{"from": ALICE, "to": BOB}]));
    assert_eq!(refused, (-32602, "Invalid chainId: 256".into()));
}

#[test]
fn a_block_that_is_given_as_rlp_has_its_traces() {
    let mut fixture = Fixture::new();
    let raw = fixture.dev.get("debug_getRawBlock", json!(["0x2"]));
    for options in [json!(null), json!({"tracer": "callTracer"})] {
        let by_hash = fixture.dev.get("debug_traceBlockByHash", json!([fixture.block, options]));
        assert_eq!(fixture.dev.get("debug_traceBlock", json!([raw, options])), by_hash);
    }
    let network = Network::regtest();
    let bytes = hex::decode(&raw.as_str().unwrap()[2..]).unwrap();
    let block = Block::decode(&bytes, &|number| network.header_shape(number)).unwrap();
    let encoded = |block: &Block| {
        let rlp = encode_block(&block.header, &block.body.transactions, &block.uncles);
        json!([format!("0x{}", hex::encode(rlp))])
    };
    let mut others = Block { body: BlockBody::default(), ..block.clone() };
    let (code, text) = fixture.dev.refused("debug_traceBlock", encoded(&others));
    assert_eq!((code, text.contains("transactions of its header")), (-32602, true), "{text}");
    others.header.timestamp += 1;
    assert_eq!(fixture.dev.refused("debug_traceBlock", encoded(&others)).0, -32600, "no block of the chain");
    for wrong in ["0x", "0x00", "0xc0"] {
        assert_eq!(fixture.dev.refused("debug_traceBlock", json!([wrong])).0, -32602, "{wrong}");
    }
}

#[test]
fn the_transaction_of_a_sender_and_nonce_is_given_whole() {
    let mut fixture = Fixture::new();
    let sent = fixture.dev.get("eth_getTransactionByHash", json!([fixture.called]));
    let found = fixture.dev.get("eth_getTransactionBySenderAndNonce", json!([ALICE, sent["nonce"]]));
    assert_eq!(found, sent);
    let none = fixture.dev.get("eth_getTransactionBySenderAndNonce", json!([ALICE, "0x9"]));
    assert_eq!(none, Value::Null);
}
