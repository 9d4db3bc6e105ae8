//! Overrides of the block in calls and estimates: the fourth parameter, as in geth.

use crate::fixture::NOBODY;
use crate::simulate::{SimulationFixture, padded, word};
use serde_json::{Value, json};

const MINER: &str = "0x00000000000000000000000000000000000000aa";

/// The parameters of a call of code.
fn params(code: &str, block: Value) -> Value {
    json!([{"to": NOBODY}, "latest", {NOBODY: {"code": code}}, block])
}

#[test]
fn overrides_of_the_block_are_what_a_call_reads() {
    let mut dev = SimulationFixture::new().dev;
    // NUMBER, TIMESTAMP, COINBASE, DIFFICULTY, GASLIMIT and BASEFEE.
    let code: String = [0x43u8, 0x42, 0x41, 0x44, 0x45, 0x48]
        .iter()
        .enumerate()
        .map(|(index, opcode)| format!("{opcode:02x}60{:02x}52", index * 32))
        .collect();
    let block = json!({
        "number": "0x77", "time": "0xffffffff", "feeRecipient": MINER, "difficulty": "0x99",
        "gasLimit": "0x500000", "baseFeePerGas": "0x7",
    });
    let words = [word(0x77), word(0xffff_ffff), padded(MINER), word(0x99), word(0x50_0000), word(7)];
    let expected: String = words.iter().map(|word| &word[2..]).collect();
    let returned = dev.get("eth_call", params(&format!("0x{code}60c06000f3"), block));
    assert_eq!(returned, format!("0x{expected}"));
    // The ancestors are those of the block whose number is changed.
    (0..2).for_each(|_| drop(dev.get("evm_mine", json!([]))));
    let first = dev.get("eth_getBlockByNumber", json!(["0x1", false]))["hash"].clone();
    for (number, hash) in [(0x70, json!(word(0))), (1, first)] {
        let code = format!("0x60{number:02x}4060005260206000f3");
        assert_eq!(dev.get("eth_call", params(&code, json!({"number": "0x77"}))), hash, "{number}");
    }
    let plain = json!([{"to": NOBODY}, "latest", {NOBODY: {"code": "0x4360005260206000f3"}}, null]);
    let head = dev.number("eth_blockNumber", json!([]));
    assert_eq!(dev.get("eth_call", plain), word(head));
}

#[test]
fn estimates_and_access_lists_see_the_overrides_too() {
    let mut dev = SimulationFixture::new().dev;
    // Stores the number of the block in the slot of that number if it is 0x77.
    let code = "0x43607714600857005b43435500";
    let usual = dev.number("eth_estimateGas", params(code, json!(null)));
    let stores = dev.number("eth_estimateGas", params(code, json!({"number": "0x77"})));
    assert!(stores >= usual + 20_000, "{usual} {stores}");
    let list = dev.get("eth_createAccessList", params(code, json!({"number": "0x77"})));
    assert_eq!(list["accessList"][0]["storageKeys"], json!([word(0x77)]));
}

#[test]
fn overrides_that_blocks_do_not_have_are_refused() {
    let mut dev = SimulationFixture::new().dev;
    for method in ["eth_call", "eth_estimateGas", "eth_createAccessList", "rootlight_getWitness"] {
        let (code, text) = dev.refused(method, params("0x00", json!({"prevRandao": word(1)})));
        assert!(code == -32602 && text.contains("'prevRandao'"), "{method}: {text}");
        let (code, text) = dev.refused(method, params("0x00", json!("0x1")));
        assert_eq!((code, &*text), (-32602, "invalid argument 3: expected block overrides"), "{method}");
        assert_eq!(dev.refused(method, params("0x00", json!({"number": "0xffffffffffffffff"}))).0, -32602);
    }
}
