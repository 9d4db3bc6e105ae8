//! Logs of the Bridge. From RSKIP-146 on they are Solidity events. Of the older logs, the simulated methods
//! write only that of `updateCollections`.

use alloc::vec::Vec;

use alloy_primitives::{Address, B256, Bytes, Log, LogData, U256, b256};

use super::super::session::Bridge;
use crate::consensus::Rule;
use crate::evm::precompiles::abi::encode;
use crate::evm::precompiles::cell_slot;
use crate::types::rlp;

/// `release_request_rejected(address indexed, uint256, int256)`
pub(super) const REJECTED: B256 = b256!("b607c3e1fbe6b38cd145b15b837f7b722b199caa60e3057b36c141adee3b75e7");
/// `release_request_received(address indexed, string, uint256)` (RSKIP-326)
pub(super) const RECEIVED: B256 = b256!("1a4457a4460d48b40c5280955faf8e4685fa73f0866f7d8f573bdd8e64aca5b1");
/// `release_request_received(address indexed, bytes, uint256)`
pub(super) const RECEIVED_OLD: B256 =
    b256!("8e04e2f2c246a91202761c435d6a4971bdc7af0617f0c739d900ecd12a6d7266");
/// `update_collections(address)`
const UPDATE: B256 = b256!("1069152f4f916cbf155ee32a695d92258481944edb5b6fd649718fc1b43e515e");
/// `commit_federation(bytes, string, bytes, string, int256)`
pub(super) const COMMIT: B256 = b256!("5b9466a0b50d1cab12eeb0b3b5d387ece7659afcc56bb15704535e6954de8c4e");
/// `commit_federation_failed(bytes, int256)`
pub(super) const COMMIT_FAILED: B256 =
    b256!("ab26567e87284faa001c12145bc6434c48ed0f307ab75ac435880958f7c2110d");
/// `union_rbtc_requested(address indexed, uint256)`
pub(super) const UNION_REQUESTED: B256 =
    b256!("7437e377b64fb06ab77f4a383b1eca94d7379f1233cac75ab75c97583953a6ab");
/// `union_rbtc_released(address indexed, uint256)`
pub(super) const UNION_RELEASED: B256 =
    b256!("1548a13bcc6ed11a355857b20975e460d7df1349d591bb3122307b1fe11e7978");
/// `union_bridge_locking_cap_increased(address indexed, uint256, uint256)`
pub(super) const UNION_CAP: B256 = b256!("a49ac28359cb709b290925e5e581c83263b85a5defb455b9211614e316d1f970");
/// `union_bridge_transfer_permissions_updated(address indexed, bool, bool)`
pub(super) const UNION_PERMISSIONS: B256 =
    b256!("fd79aa37951edf622ef3d0a58665034675cf32e364213a1a7579448cc650d70e");

impl Bridge<'_> {
    /// Writes the log of an event. The address, if any, is an indexed topic. `words` and `tails` are the data as [`encode`] takes them.
    pub(super) fn event(
        &mut self,
        event: B256,
        indexed: Option<Address>,
        words: &[Option<U256>],
        tails: &[&[u8]],
    ) {
        let mut topics = alloc::vec![event];
        topics.extend(indexed.map(|address| address.into_word()));
        self.write_log(topics, encode(words, tails));
    }

    /// Writes the log of `updateCollections`.
    pub(super) fn log_update(&mut self) {
        let caller = self.caller();
        if self.has(Rule::Rskip146) {
            return self.event(UPDATE, None, &[Some(caller.into_word().into())], &[]);
        }
        let mut data = Vec::new();
        rlp::put_str(&mut data, caller.as_slice());
        self.write_log(alloc::vec![cell_slot("update_collections_topic").into()], data);
    }

    /// Writes a log of the Bridge.
    fn write_log(&mut self, topics: Vec<B256>, data: Vec<u8>) {
        let data = LogData::new_unchecked(topics, Bytes::from(data));
        self.host.log(Log { address: Self::own(), data });
    }
}
