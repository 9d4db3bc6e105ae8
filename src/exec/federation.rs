//! The members of the federation that REMASC pays.

use alloc::vec::Vec;

use alloy_primitives::{address, Address};

use super::block_context::BlockContext;
use crate::state::World;

/// Genesis federations in their order (by compressed BTC key); their RSK keys are their BTC keys.
const MAINNET: &[Address] = &[
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
];
const TESTNET: &[Address] = &[
    address!("4495768e683423a4299d6a7f02a0689a6ff5a0a4"),
    address!("0345174501d5f6fc7926377b63317c4ad7215905"),
    address!("13bcf2c2342b6eaa24119f9690aca0d718f384ff"),
    address!("9a3bfdea2245738dd5f25453d13742350a4f1c6e"),
];
const REGTEST: &[Address] = &[
    address!("6b045752f4d650a510a353bbf7e52988331e7f5b"),
    address!("85845342b0d5260d516d6da5280a7df9a96d1925"),
    address!("138161cda86b55c0de1bc3a0adef974633c85fbe"),
];

/// Members of the genesis federation of a network, in federation order.
pub(super) fn genesis_federation(chain_id: u64) -> &'static [Address] {
    match chain_id {
        30 => MAINNET,
        31 | 34 => TESTNET,
        _ => REGTEST,
    }
}

/// Members of the federation that is active at a height, in federation order.
pub(super) fn active_federation(
    _world: &mut World,
    context: &BlockContext<'_>,
    _number: u64,
) -> Vec<Address> {
    genesis_federation(context.network.chain_id).to_vec()
}
