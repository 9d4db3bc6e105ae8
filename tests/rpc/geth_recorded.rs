//! Tracers, simulations and methods of go-ethereum: `tests/vectors/geth.json` has geth's answers to the same requests, after
//! the same transactions to the same contracts. `tests/clients/geth.mjs` makes the recording.

use crate::anvil_recorded::{assert_alike, chain};
use serde_json::{Value, json};

/// Differences that are meant: the start of a method's name, a part of the place, and why.
const MEANT: &[(&str, &str, &str)] = &[
    ("debug_", "/error: ", "geth names the instruction, or the rule about gas"),
    ("debug_", "/index: only ours", "logs have their index, as in the reference node"),
    ("debug_", "/gas: none", "a destruction uses no gas and has no input, as in the reference node"),
    ("debug_", "/gasUsed: none", "as above"),
    ("debug_", "/input: none", "as above"),
    (
        "debug_",
        "0x0000000000000000000000000000000000000000: none",
        "geth pays fees to its miner, at address 0",
    ),
    ("debug_", "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266/balance", "less the fees"),
    ("debug_", "/nonce: none", "a created contract begins with nonce 0"),
    ("debug_", "/balance: only ours", "an account that is new is shown even if it is empty"),
    ("debug_traceBlock", "7 items", "the transaction of REMASC"),
    ("debug_", "/gasCost: ", "Rootstock's gas"),
    ("debug_", "/memory/", "with 0x, as in execution-apis and in newer releases of geth"),
    ("debug_", "/storage/0", "as above"),
    ("debug_executionWitness", "/codes: ", "code of at most 32 bytes is in the node of its account"),
    ("debug_executionWitness", "/state", "nodes of the Unitrie"),
    ("debug_executionWitness", "/headers/0: ", "Rootstock's headers are RLP, and have other fields"),
    ("debug_executionWitness", "/keys: none", "not in execution-apis"),
    ("debug_executionWitness", "/uncles: only ours", "REMASC pays their miners"),
    ("debug_getRaw", ": \"0x", "the encoding of Rootstock's headers, blocks and receipts"),
    ("debug_getRaw", "7 items", "the receipt of REMASC's transaction"),
    ("txpool_", "/pending/0x", "senders without 0x, as in the reference node"),
    ("txpool_", "/pending/f39", "as above"),
    ("txpool_contentFrom", "/chainId: none", "the reference node shows none"),
    ("txpool_status", "", "numbers, as in the reference node"),
    ("eth_simulateV1", "/transactionHash", "hashes of transactions with other fields"),
    ("eth_simulateV1", "/transactions/", "as above, and legacy ones"),
    ("eth_simulateV1", "/maxUsedGas", "of execution-apis"),
    ("eth_simulateV1", "/error/code", "of execution-apis"),
    ("eth_simulateV1", "/returnData", "the data of the revert, as in execution-apis"),
    ("eth_simulateV1", "/totalDifficulty: only ours", "as in other blocks"),
    ("eth_getBlockReceipts", "/removed: none", "the reference node shows none"),
    ("eth_fillTransaction", "/raw", "the bytes that are signed (EIP-155)"),
    ("eth_fillTransaction", "/tx/v", "as above"),
    ("eth_fillTransaction", "/tx/max", "Rootstock has no fees of EIP-1559"),
    ("eth_fillTransaction", "only ours", "members of other transaction objects"),
];

#[test]
fn answers_have_the_shape_of_those_of_geth() {
    let recording: Value = serde_json::from_str(include_str!("../vectors/geth.json")).unwrap();
    let mut dev = chain(&recording["transactions"]);
    dev.get("eth_sendTransaction", json!([recording["later"]]));
    for _ in 0..2 {
        dev.get("evm_mine", json!([]));
    }
    dev.get("eth_sendTransaction", json!([recording["waiting"]]));
    assert_alike(&mut dev, &recording, MEANT);
}
