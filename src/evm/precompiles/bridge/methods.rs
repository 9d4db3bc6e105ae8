//! Table of the Bridge's methods, as the reference node has them: selector, arguments, price, rules and permitted callers.

use super::super::abi::{Arg, ArgKind};
use super::members::FederationKind;
use super::write::{change, headers, lists, pegin, release, union, update, votes};
use super::{Bridge, BridgeResult, members, queue, reads, store, whitelist};
use crate::consensus::{Rule, RuleSet};

/// The rules under which a method exists.
#[derive(Clone, Copy)]
pub(super) enum ActivationGate {
    Always,
    From(Rule),
    Until(Rule),
}

/// The callers that may use a method.
#[derive(Clone, Copy)]
pub(super) enum AllowedCallers {
    /// Transactions, contracts and local calls.
    Anyone,
    /// Only local calls (RSKIP-88).
    Local,
    /// Only local calls until this rule is active.
    LocalUntil(Rule),
}

/// The action of a method.
#[derive(Clone, Copy)]
pub(super) enum MethodBody {
    /// The simulation of the method.
    Run(fn(&mut Bridge<'_>, &[Arg<'_>]) -> BridgeResult),
    /// The federation that the method is about, and the simulation, which is the same for several federations.
    Of(FederationKind, fn(&mut Bridge<'_>, FederationKind, &[Arg<'_>]) -> BridgeResult),
    /// The method is not simulated. A transaction that calls it fails, a local call is refused.
    Missing,
}

/// A method of the Bridge.
pub(super) struct BridgeMethod {
    pub(super) selector: u32,
    pub(super) name: &'static str,
    pub(super) arguments: &'static [ArgKind],
    /// Price in gas, without call data; 0 if the price depends on data (see `price` in `dispatch.rs`).
    pub(super) cost: u32,
    gate: ActivationGate,
    pub(super) callers: AllowedCallers,
    /// Whether the method only reads, so that STATICCALL can use it too (RSKIP-417).
    pub(super) reads: bool,
    pub(super) action: MethodBody,
}

impl BridgeMethod {
    /// The method with a selector, if it exists under these rules.
    pub(super) fn find(selector: [u8; 4], rules: RuleSet) -> Option<&'static Self> {
        let selector = u32::from_be_bytes(selector);
        METHODS.iter().find(|method| method.selector == selector).filter(|method| match method.gate {
            ActivationGate::Always => true,
            ActivationGate::From(rule) => rules.has(rule),
            ActivationGate::Until(rule) => !rules.has(rule),
        })
    }

    /// Whether only local calls may use the method.
    pub(super) fn is_local(&self, rules: RuleSet) -> bool {
        match self.callers {
            AllowedCallers::Anyone => false,
            AllowedCallers::Local => true,
            AllowedCallers::LocalUntil(rule) => !rules.has(rule),
        }
    }
}

#[allow(clippy::too_many_arguments)] // a row of the table
const fn row(
    selector: u32,
    name: &'static str,
    arguments: &'static [ArgKind],
    cost: u32,
    gate: ActivationGate,
    callers: AllowedCallers,
    reads: bool,
    action: MethodBody,
) -> BridgeMethod {
    BridgeMethod { selector, name, arguments, cost, gate, callers, reads, action }
}

use ActivationGate::{Always, From, Until};
use AllowedCallers::{Anyone, Local, LocalUntil};
use MethodBody::{Missing, Of, Run};

// The column `reads` of the table.
const READ: bool = true;
const CALL: bool = false;

// Lists of arguments: W is a word, B `bytes` or `string`, F `bytes32`, L `bytes[]`, M `bytes32[]`.
const NONE: &[ArgKind] = &[];
const W: &[ArgKind] = &[ArgKind::Word];
const WW: &[ArgKind] = &[ArgKind::Word, ArgKind::Word];
const WB: &[ArgKind] = &[ArgKind::Word, ArgKind::Bytes];
const F: &[ArgKind] = &[ArgKind::Fixed];
const B: &[ArgKind] = &[ArgKind::Bytes];
const BW: &[ArgKind] = &[ArgKind::Bytes, ArgKind::Word];
const BBB: &[ArgKind] = &[ArgKind::Bytes, ArgKind::Bytes, ArgKind::Bytes];
const BWB: &[ArgKind] = &[ArgKind::Bytes, ArgKind::Word, ArgKind::Bytes];
const L: &[ArgKind] = &[ArgKind::BytesList];
const BLB: &[ArgKind] = &[ArgKind::Bytes, ArgKind::BytesList, ArgKind::Bytes];
const FFWM: &[ArgKind] = &[ArgKind::Fixed, ArgKind::Fixed, ArgKind::Word, ArgKind::FixedList];
const BFBFF: &[ArgKind] = &[ArgKind::Bytes, ArgKind::Fixed, ArgKind::Bytes, ArgKind::Fixed, ArgKind::Fixed];
const BWBFBWBW: &[ArgKind] = &[
    ArgKind::Bytes,
    ArgKind::Word,
    ArgKind::Bytes,
    ArgKind::Fixed,
    ArgKind::Bytes,
    ArgKind::Word,
    ArgKind::Bytes,
    ArgKind::Word,
];

/// Selector of `releaseBtc()`, which is also called by empty data.
pub(super) const RELEASE_BTC: [u8; 4] = [0x80, 0xaf, 0x28, 0x71];
/// Selector of `receiveHeaders(bytes[])`.
pub(super) const RECEIVE_HEADERS: u32 = 0xe540_0e7b;
/// Selector of `getBtcTransactionConfirmations(bytes32,bytes32,uint256,bytes32[])`.
pub(super) const CONFIRMATIONS: u32 = 0x5b64_4587;

/// All methods of all eras, with the fields of [`BridgeMethod`] in their order.
#[rustfmt::skip]
static METHODS: [BridgeMethod; 83] = [
    row(0xecef_d339, "addFederatorPublicKey", B, 13_000, Until(Rule::Rskip123), Anyone, CALL, Missing),
    row(0x444f_f9da, "addFederatorPublicKeyMultikey", BBB, 13_000, From(Rule::Rskip123), Anyone, CALL, Run(change::add)),
    row(0x502b_bbce, "addLockWhitelistAddress", BW, 25_000, Until(Rule::Rskip87), Anyone, CALL, Run(lists::add_one_off)),
    row(0x8482_06d9, "addOneOffLockWhitelistAddress", BW, 25_000, From(Rule::Rskip87), Anyone, CALL, Run(lists::add_one_off)),
    row(0xb906_c938, "addUnlimitedLockWhitelistAddress", B, 25_000, From(Rule::Rskip87), Anyone, CALL, Run(lists::add_unlimited)),
    row(0xf10b_9c59, "addSignature", BLB, 70_000, Always, Anyone, CALL, Run(pegin::sign)),
    row(0x1533_330f, "commitFederation", B, 38_000, Always, Anyone, CALL, Run(change::commit)),
    row(0x1183_d5d1, "createFederation", NONE, 11_000, Always, Anyone, CALL, Run(change::create)),
    row(0x14c8_9c01, "getBtcBlockchainBestChainHeight", NONE, 19_000, Always, LocalUntil(Rule::Rskip220), READ, Run(store::best_height)),
    row(0x4897_193f, "getBtcBlockchainInitialBlockHeight", NONE, 20_000, From(Rule::Rskip89), Local, READ, Run(store::initial_height)),
    row(0xcf4f_f2d2, "getBtcBlockchainBlockLocator", NONE, 76_000, Until(Rule::Rskip89), Local, READ, Missing),
    row(0xefd4_4418, "getBtcBlockchainBlockHashAtDepth", W, 20_000, From(Rule::Rskip89), Local, READ, Run(store::hash_at_depth)),
    row(CONFIRMATIONS, "getBtcTransactionConfirmations", FFWM, 0, From(Rule::Rskip122), Anyone, READ, Run(store::confirmations)),
    row(0x97fc_ca7d, "getBtcTxHashProcessedHeight", B, 22_000, Always, Local, READ, Run(reads::processed_height)),
    row(0x6923_fa85, "getFederationAddress", NONE, 11_000, Always, Local, READ, Of(FederationKind::Active, members::address)),
    row(0x1b20_45ee, "getFederationCreationBlockNumber", NONE, 10_000, Always, Local, READ, Of(FederationKind::Active, members::creation_block)),
    row(0x5e2d_b9d4, "getFederationCreationTime", NONE, 10_000, Always, Local, READ, Of(FederationKind::Active, members::creation_time)),
    row(0x802a_d4b6, "getFederationSize", NONE, 10_000, Always, Local, READ, Of(FederationKind::Active, members::size)),
    row(0x0fd4_7456, "getFederationThreshold", NONE, 11_000, Always, Local, READ, Of(FederationKind::Active, members::threshold)),
    row(0x6b89_a1af, "getFederatorPublicKey", W, 10_000, Until(Rule::Rskip123), Local, READ, Of(FederationKind::Active, members::key)),
    row(0x549c_fd1c, "getFederatorPublicKeyOfType", WB, 10_000, From(Rule::Rskip123), Local, READ, Of(FederationKind::Active, members::key_of_type)),
    row(0x724e_c886, "getFeePerKb", NONE, 2_000, Always, Local, READ, Run(reads::fee_per_kb)),
    row(0x9398_8b76, "getLockWhitelistAddress", W, 16_000, Always, Local, READ, Run(whitelist::address_at)),
    row(0x251c_5f7b, "getLockWhitelistEntryByAddress", B, 16_000, From(Rule::Rskip87), Local, READ, Run(whitelist::entry)),
    row(0xe9e6_58dc, "getLockWhitelistSize", NONE, 16_000, Always, Local, READ, Run(whitelist::size)),
    row(0x2f8d_158f, "getMinimumLockTxValue", NONE, 2_000, Always, Local, READ, Run(reads::minimum_pegin)),
    row(0x6ce0_ed5a, "getPendingFederationHash", NONE, 3_000, Always, Local, READ, Run(members::pending_hash)),
    row(0x3ac7_2b38, "getPendingFederationSize", NONE, 3_000, Always, Local, READ, Run(members::pending_size)),
    row(0x492f_7c44, "getPendingFederatorPublicKey", W, 3_000, Until(Rule::Rskip123), Local, READ, Run(members::pending_key)),
    row(0xc612_95d9, "getPendingFederatorPublicKeyOfType", WB, 3_000, From(Rule::Rskip123), Local, READ, Run(members::pending_key_of_type)),
    row(0x4722_7286, "getRetiringFederationAddress", NONE, 3_000, Always, Local, READ, Of(FederationKind::Retiring, members::address)),
    row(0xd905_153f, "getRetiringFederationCreationBlockNumber", NONE, 3_000, Always, Local, READ, Of(FederationKind::Retiring, members::creation_block)),
    row(0x3f0c_e9b1, "getRetiringFederationCreationTime", NONE, 3_000, Always, Local, READ, Of(FederationKind::Retiring, members::creation_time)),
    row(0xd970_b0fd, "getRetiringFederationSize", NONE, 3_000, Always, Local, READ, Of(FederationKind::Retiring, members::size)),
    row(0x07bb_dfc4, "getRetiringFederationThreshold", NONE, 3_000, Always, Local, READ, Of(FederationKind::Retiring, members::threshold)),
    row(0x4675_d6de, "getRetiringFederatorPublicKey", W, 3_000, Until(Rule::Rskip123), Local, READ, Of(FederationKind::Retiring, members::key)),
    row(0x68bc_2b2b, "getRetiringFederatorPublicKeyOfType", WB, 3_000, From(Rule::Rskip123), Local, READ, Of(FederationKind::Retiring, members::key_of_type)),
    row(0x956d_9713, "getProposedFederationAddress", NONE, 3_000, From(Rule::Rskip419), Local, READ, Of(FederationKind::Proposed, members::address)),
    row(0x06eb_eb8c, "getProposedFederationSize", NONE, 3_000, From(Rule::Rskip419), Local, READ, Of(FederationKind::Proposed, members::size)),
    row(0xfa2d_f78c, "getProposedFederationCreationTime", NONE, 3_000, From(Rule::Rskip419), Local, READ, Of(FederationKind::Proposed, members::creation_time)),
    row(0x2b16_9b23, "getProposedFederationCreationBlockNumber", NONE, 3_000, From(Rule::Rskip419), Local, READ, Of(FederationKind::Proposed, members::creation_block)),
    row(0xe322_8fab, "getProposedFederatorPublicKeyOfType", WB, 3_000, From(Rule::Rskip419), Local, READ, Of(FederationKind::Proposed, members::key_of_type)),
    row(0xc4fb_ca20, "getStateForBtcReleaseClient", NONE, 4_000, Always, Local, READ, Run(reads::release_state)),
    row(0x4c72_3e89, "getStateForSvpClient", NONE, 4_000, From(Rule::Rskip419), Local, READ, Run(reads::svp_state)),
    row(0x0d0c_ee93, "getStateForDebugging", NONE, 3_000_000, Always, Local, READ, Run(queue::debugging_state)),
    row(0x3f9d_b977, "getLockingCap", NONE, 3_000, From(Rule::Rskip134), Local, READ, Run(reads::locking_cap)),
    row(0x1d73_d5dd, "getActivePowpegRedeemScript", NONE, 30_000, From(Rule::Rskip293), Anyone, READ, Run(members::redeem_script)),
    row(0x177d_6e18, "getActiveFederationCreationBlockHeight", NONE, 3_000, From(Rule::Rskip186), Anyone, READ, Run(reads::creation_height)),
    row(0x2910_aeb2, "increaseLockingCap", W, 8_000, From(Rule::Rskip134), Anyone, CALL, Run(votes::increase_cap)),
    row(0x248a_982d, "isBtcTxHashAlreadyProcessed", B, 23_000, Always, Local, READ, Run(reads::is_processed)),
    row(RECEIVE_HEADERS, "receiveHeaders", L, 0, Always, Anyone, CALL, Run(headers::receive_all)),
    row(0x884b_dd86, "receiveHeader", B, 10_600, From(Rule::Rskip200), Anyone, CALL, Run(headers::receive_one)),
    row(0x43dc_0656, "registerBtcTransaction", BWB, 22_000, Always, Anyone, CALL, Run(pegin::register)),
    row(u32::from_be_bytes(RELEASE_BTC), "releaseBtc", NONE, 23_000, Always, Anyone, CALL, Run(release::request)),
    row(0xfcde_b46f, "removeLockWhitelistAddress", B, 24_000, Always, Anyone, CALL, Run(lists::remove)),
    row(0x8dec_3d32, "rollbackFederation", NONE, 12_000, Always, Anyone, CALL, Run(change::roll_back)),
    row(0xc1cc_54f5, "setLockWhitelistDisableBlockDelay", W, 24_000, Always, Anyone, CALL, Run(lists::set_delay)),
    row(0x0c5a_9990, "updateCollections", NONE, 48_000, Always, Anyone, CALL, Run(update::run)),
    row(0x0461_313e, "voteFeePerKbChange", W, 10_000, Always, Anyone, CALL, Run(votes::fee_per_kb)),
    row(0xccf4_17ae, "registerBtcCoinbaseTransaction", BFBFF, 10_000, From(Rule::Rskip143), Anyone, CALL, Run(pegin::register_coinbase)),
    row(0x253b_944b, "hasBtcBlockCoinbaseTransactionInformation", F, 5_000, From(Rule::Rskip143), Anyone, READ, Run(reads::has_coinbase)),
    row(0x6adc_0133, "registerFastBridgeBtcTransaction", BWBFBWBW, 25_000, From(Rule::Rskip176), Anyone, CALL, Run(pegin::register_fast)),
    row(0xf0b2_424b, "getBtcBlockchainBestBlockHeader", NONE, 3_800, From(Rule::Rskip220), Anyone, READ, Run(store::best_header)),
    row(0x739e_364a, "getBtcBlockchainBlockHeaderByHash", F, 4_600, From(Rule::Rskip220), Anyone, READ, Run(store::header_by_hash)),
    row(0xbd0c_1fff, "getBtcBlockchainBlockHeaderByHeight", W, 5_000, From(Rule::Rskip220), Anyone, READ, Run(store::header_by_height)),
    row(0xe023_6724, "getBtcBlockchainParentBlockHeaderByHash", F, 4_900, From(Rule::Rskip220), Anyone, READ, Run(store::parent_header)),
    row(0xe34f_834f, "getNextPegoutCreationBlockNumber", NONE, 3_000, From(Rule::Rskip271), Anyone, READ, Run(queue::next_height)),
    row(0xf4e4_f963, "getQueuedPegoutsCount", NONE, 3_000, From(Rule::Rskip271), Anyone, READ, Run(queue::count)),
    row(0x7817_d854, "getEstimatedFeesForNextPegOutEvent", NONE, 10_000, From(Rule::Rskip271), Anyone, READ, Run(queue::next_fees)),
    row(0xd2b7_12f4, "getEstimatedFeesForPegOutAmount", W, 10_000, From(Rule::Rskip540), Anyone, READ, Run(queue::amount_fees)),
    row(0xcc55_d66f, "setUnionBridgeContractAddressForTestnet", W, 8_000, From(Rule::Rskip502), Anyone, CALL, Run(union::set_address)),
    row(0xd3af_747c, "getUnionBridgeContractAddress", NONE, 3_000, From(Rule::Rskip502), Anyone, READ, Run(reads::union_address)),
    row(0x33e0_8fed, "getUnionBridgeLockingCap", NONE, 3_000, From(Rule::Rskip502), Anyone, READ, Run(reads::union_cap)),
    row(0xa57a_0ada, "increaseUnionBridgeLockingCap", W, 8_000, From(Rule::Rskip502), Anyone, CALL, Run(union::increase_cap)),
    row(0x5521_647a, "requestUnionBridgeRbtc", W, 8_000, From(Rule::Rskip502), Anyone, CALL, Run(union::request)),
    row(0x4304_62a8, "releaseUnionBridgeRbtc", NONE, 8_000, From(Rule::Rskip502), Anyone, CALL, Run(union::release)),
    row(0x5fcc_6d24, "setUnionBridgeTransferPermissions", WW, 8_000, From(Rule::Rskip502), Anyone, CALL, Run(union::set_permissions)),
    row(0xf8cf_da8e, "getSuperEvent", NONE, 3_000, From(Rule::Rskip529), Anyone, READ, Run(reads::super_event)),
    row(0x9996_1ea5, "setSuperEvent", B, 8_000, From(Rule::Rskip529), Anyone, CALL, Run(union::set_super_event)),
    row(0xd2ba_1e45, "clearSuperEvent", NONE, 8_000, From(Rule::Rskip529), Anyone, CALL, Run(union::clear_super_event)),
    row(0xa25b_94cb, "getBaseEvent", NONE, 3_000, From(Rule::Rskip529), Anyone, READ, Run(reads::base_event)),
    row(0xfe43_e2f8, "setBaseEvent", B, 8_000, From(Rule::Rskip529), Anyone, CALL, Run(union::set_base_event)),
    row(0x93e7_a33b, "clearBaseEvent", NONE, 8_000, From(Rule::Rskip529), Anyone, CALL, Run(union::clear_base_event)),
];
