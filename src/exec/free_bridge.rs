//! Bridge transactions that cost nothing: those of the genesis federation and of the accounts that may
//! change federation, whitelist and fee per kilobyte, as long as Bridge transactions are not paid.

use alloy_primitives::{address, Address};

use crate::consensus::{Network, Rule, RuleSet};
use crate::evm::intrinsic_gas;
use crate::types::Transaction;

/// The Bridge.
pub(super) const BRIDGE: Address = address!("0000000000000000000000000000000001000006");

const MAINNET: &[Address] = &[
    // Genesis federation.
    address!("1888fa870b97a4845a6a1f7eee4ebb507dbe0967"),
    address!("530aad5be57e9be2084881b1d84f2a30e896ae36"),
    address!("0474f314fef5373fd2afaafdcd7a8bdec1ab4309"),
    address!("2c40fc683ee04c1b918635005ae7c89e1eb7b1f1"),
    address!("1e01385c6d522583575f60fee384f30405ffae01"),
    address!("304660d1beeb0918b7b3f7657d8418686cb578b1"),
    address!("e4945372d758650275e23fa90f754d0f67fa66e2"),
    address!("abb1d944a0dc0ead5a36b31087bd1fc31726e674"),
    address!("32c865f2dbf36ce6f4cfcb624b559ef98b33a2d1"),
    address!("f006f6202e0c29ef2e3b1532d2307427864ed77a"),
    address!("ee877101e4e5758930222e6605cbd0a19e8ad981"),
    address!("67af698c927ae574fb43d45a50522c207f81100f"),
    address!("0a1d7f3c50dae072b019eff0f306ae1613b56b3c"),
    address!("571dde4b32017efaad8dc0c9fa9b748096c036a2"),
    address!("f74b7e0d5bdd14eaedf725bb1549ce14abeb71dd"),
    // Federation change, fee per kilobyte, whitelist.
    address!("56bc5087ac97bc85a877bd20dfef910b78b1dc5a"),
    address!("6fe1cd06a80fa52eb34d7e4d1845881c2b5de89a"),
    address!("d41f4d4c7fc8d5fa9468d0c466c9a726397f91b6"),
    address!("a02db0ed94a5894bc6f9079bb9a2d93ada1917f3"),
    address!("180a7edda4e640ea5a3e495e17a1efad260c39e9"),
    address!("8418edc8fea47183116b4c8cd6a12e51a7e169c1"),
    address!("6ba9d41b07da470fe340cbd439a42538795eb75b"),
];

const TESTNET: &[Address] = &[
    address!("4495768e683423a4299d6a7f02a0689a6ff5a0a4"),
    address!("0345174501d5f6fc7926377b63317c4ad7215905"),
    address!("13bcf2c2342b6eaa24119f9690aca0d718f384ff"),
    address!("9a3bfdea2245738dd5f25453d13742350a4f1c6e"),
    address!("5990aaedfccc88e2f7321a5b8d8db1f6e64abf03"),
    address!("112140a53537b49788456daffda2e20efd1865cd"),
    address!("5526529f386c4c77044f1c29bb965b37a7767c3d"),
    address!("4502d34c8e889b2be7e1bfe1a645df8fa3f9204b"),
    address!("f7d8befef29878e5c35fee23e6889ed88afb56b8"),
    address!("9e472a8b3f3c95736b0b255db2b7ba38c687c751"),
    address!("54fdb399cf235c9b0d464ab4055af9251883bbfe"),
];

const REGTEST: &[Address] = &[
    address!("6b045752f4d650a510a353bbf7e52988331e7f5b"),
    address!("85845342b0d5260d516d6da5280a7df9a96d1925"),
    address!("138161cda86b55c0de1bc3a0adef974633c85fbe"),
    address!("5252403bca6ac3c104abdd320a736fa38282045d"),
    address!("0d8c44bd578a4e7148d1758b3332b529e93e48c1"),
    address!("566bca18df14ed75efcc1a8a4f3947e81132dbbc"),
    address!("2e7c9159614ddc0185e335d3343e92700c3e5a2d"),
    address!("f0652637df184eca87e6bde29893825721dfb79f"),
    address!("53f8f6dabd612b6137215ddd7758bb5cdd638922"),
    address!("87d2a0f33744929da08b65fd62b627ea52b25f8e"),
];

/// Gas that a transaction needs before anything runs: what its data cost, or nothing where it is free. Its sender's
/// signature must have been accepted.
pub fn basic_cost(transaction: &Transaction, sender: &Address, network: &Network, rules: RuleSet) -> u64 {
    if is_free(transaction, sender, network, rules) {
        return 0;
    }
    intrinsic_gas(&transaction.data, transaction.to.is_none(), rules)
}

/// Whether a transaction pays no gas. Its sender's signature must have been accepted.
pub(super) fn is_free(
    transaction: &Transaction,
    sender: &Address,
    network: &Network,
    rules: RuleSet,
) -> bool {
    if transaction.to != Some(BRIDGE) || rules.has(Rule::BridgeTxsPaid) {
        return false;
    }
    let free = match network.chain_id {
        30 => MAINNET,
        31 | 34 => TESTNET,
        _ => REGTEST,
    };
    free.contains(sender)
}
