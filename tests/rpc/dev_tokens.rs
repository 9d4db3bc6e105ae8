//! Balances and allowances of tokens that are set in their storage.

use std::sync::Arc;

use rootlight::dev::Mining;
use rootlight::exec::{Interrupts, Watchdog};
use serde_json::{Value, json};

use crate::dev_rpc::{ALICE, BOB, NOBODY, dev};
use crate::fixture::TOKEN;
use crate::support::dev::DevClient;

/// Code that returns the cell of a mapping of mappings in slot 4, whose keys are the two arguments.
const ALLOWANCES: &str = "0x6004356000526004602052604060002060205260243560005260406000205460005260206000f3";
/// A token that asks the one below it.
const PROXY: &str = "0x00000000000000000000000000000000000abcdf";

fn word(address: &str) -> String {
    format!("{:0>64}", &address[2..])
}

fn read(dev: &mut DevClient, token: &str, about: &[&str]) -> Value {
    let arguments: String = about.iter().map(|address| word(address)).collect();
    dev.get("eth_call", json!([{"to": token, "data": format!("0x00000000{arguments}")}, "latest"]))
}

#[test]
fn the_balance_of_a_token_is_set_in_its_cell() {
    let mut dev = dev(Mining::Manual);
    dev.get("anvil_setCode", json!([NOBODY, TOKEN]));
    // CALLDATASIZE, PUSH1 0, PUSH1 0, CALLDATACOPY; STATICCALL of the token; RETURN of its 32 bytes.
    let proxy = format!("0x366000600037602060003660007300{}5afa5060206000f3", &NOBODY[4..]);
    dev.get("anvil_setCode", json!([PROXY, proxy]));
    for (token, amount) in [(NOBODY, "0x5"), (PROXY, "0x7"), (NOBODY, "0x7"), (NOBODY, "0x0")] {
        let head = dev.chain().view().head().hash();
        for method in ["anvil_dealERC20", "hardhat_dealERC20", "anvil_setERC20Balance"] {
            assert_eq!(dev.get(method, json!([BOB, token, amount])), Value::Null);
            let amount = format!("0x{:0>64}", &amount[2..]);
            assert_eq!(read(&mut dev, token, &[BOB]), amount);
            assert_eq!(read(&mut dev, NOBODY, &[BOB]), amount, "where the cell is");
        }
        assert_eq!(dev.chain().view().head().hash(), head, "no block is mined");
    }
    assert_eq!(
        dev.get("eth_getStorageAt", json!([NOBODY, "0x5", "latest"])),
        format!("0x{}", "0".repeat(64))
    );
    dev.get("anvil_dealERC20", json!([BOB, NOBODY, format!("0x{}", "f".repeat(64))]));
    assert_eq!(read(&mut dev, NOBODY, &[BOB]), format!("0x{}", "f".repeat(64)));
}

#[test]
fn the_allowance_of_a_spender_is_set_in_its_cell() {
    let mut dev = dev(Mining::Manual);
    dev.get("anvil_setCode", json!([NOBODY, ALLOWANCES]));
    assert_eq!(dev.get("anvil_setERC20Allowance", json!([ALICE, BOB, NOBODY, "0x9"])), Value::Null);
    assert_eq!(read(&mut dev, NOBODY, &[ALICE, BOB]), format!("0x{:064x}", 9));
    assert_eq!(read(&mut dev, NOBODY, &[BOB, ALICE]), format!("0x{:064x}", 0));
}

/// Code that reads slots 0 to 79 and returns the value of one of them.
fn reads_many(returned: u8) -> String {
    let reads: String = (0..80).map(|slot| format!("60{slot:02x}5450")).collect();
    format!("0x{reads}60{returned:02x}5460005260206000f3")
}

#[test]
fn the_first_cells_that_a_token_reads_are_tried() {
    let mut dev = dev(Mining::Manual);
    for (slot, is_tried) in [(63, true), (64, false)] {
        dev.get("anvil_setCode", json!([NOBODY, reads_many(slot)]));
        let answer = dev.ask("anvil_dealERC20", json!([BOB, NOBODY, "0x5"]));
        assert_eq!(answer["error"].is_null(), is_tried, "{slot}: {answer}");
    }
}

/// The time of a message is over.
struct Over;

impl Watchdog for Over {
    fn next_block(&self) -> bool {
        true
    }

    fn is_due(&self) -> bool {
        true
    }

    fn is_stopping(&self) -> bool {
        false
    }
}

#[test]
fn the_search_for_a_cell_ends_with_the_time_of_its_message() {
    let mut dev = dev(Mining::Manual);
    // The contract reads slot 1, and then loops without end.
    dev.get("anvil_setCode", json!([NOBODY, "0x600154505b600456"]));
    let endless = dev.refused("anvil_dealERC20", json!([BOB, NOBODY, "0x5"]));
    dev.chain().interrupt_by(Interrupts::by(Arc::new(Over)));
    let over = dev.refused("anvil_dealERC20", json!([BOB, NOBODY, "0x5"]));
    assert_ne!(over, endless);
    assert_eq!(over.0, -32011, "{over:?}");
}

#[test]
fn a_token_without_a_cell_for_the_value_is_refused() {
    let mut dev = dev(Mining::Manual);
    for code in [
        "0x",
        // The balance is twice the value of slot 1.
        "0x60015460020260005260206000f3",
        // The balance is always 5, and slot 1 is read, too.
        "0x60015450600560005260206000f3",
        // The call reverts.
        "0x60015460006000fd",
    ] {
        dev.get("anvil_setCode", json!([NOBODY, code]));
        let root = dev.chain().view().head_state().root();
        let (code, text) = dev.refused("anvil_dealERC20", json!([BOB, NOBODY, "0x5"]));
        assert_eq!((code, text.contains("anvil_setStorageAt")), (-32000, true), "{text}");
        assert_eq!(dev.chain().view().head_state().root(), root);
    }
}
