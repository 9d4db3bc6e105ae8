//! Unit tests of the Bridge and other native contracts: the method table, cells that are reverted with their
//! frame, votes, and random input over random cells.

use crate::support;

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, Log, U256, address, keccak256};
use proptest::prelude::*;
use rootlight::consensus::{Network, Rule, RuleSet};
use rootlight::evm::precompiles::{
    CallType, NativeBlock, NativeCall, NativeFailure, NativeHost, Precompile, cell_slot,
};
use rootlight::evm::{EvmAccount, EvmState, FirstFrame, Machine, RunContext, RunEnvironment};
use rootlight::types::{Header, SealedHeader};
use sha2::{Digest as _, Sha256};
use support::{bytes, low_address};

const BRIDGE: u64 = 0x0100_0006;
/// The only account that votes on `feePerKb` on regtest.
const FEE_VOTER: Address = address!("53f8f6dabd612b6137215ddd7758bb5cdd638922");

fn rules() -> RuleSet {
    Network::regtest().rules(100)
}

/// The methods of [`NativeHost`] and [`EvmState`] that read ancestors, for a block without any.
macro_rules! no_ancestors {
    () => {
        fn header(&mut self, _: u64) -> Option<SealedHeader> {
            None
        }

        fn uncles(&mut self, _: u64) -> Option<Vec<Header>> {
            None
        }

        fn total_difficulty(&mut self, _: u64) -> Option<U256> {
            None
        }
    };
}

/// A host that keeps its cells in a map.
#[derive(Clone, Default)]
struct MapHost {
    cells: BTreeMap<(Address, U256), Bytes>,
    any_cell: Option<Bytes>,
    logs: Vec<Log>,
}

impl NativeHost for MapHost {
    fn cell(&mut self, contract: Address, slot: U256) -> Bytes {
        let cell = self.cells.get(&(contract, slot)).or(self.any_cell.as_ref());
        cell.cloned().unwrap_or_default()
    }

    fn set_cell(&mut self, contract: Address, slot: U256, bytes: Bytes) {
        self.cells.insert((contract, slot), bytes);
    }

    fn balance(&mut self, _: Address) -> U256 {
        U256::MAX
    }

    fn transfer(&mut self, _: Address, _: Address, _: U256) -> bool {
        true
    }

    fn pay(&mut self, from: Address, to: Address, amount: U256) -> bool {
        self.transfer(from, to, amount)
    }

    fn log(&mut self, log: Log) {
        self.logs.push(log);
    }

    no_ancestors!();
}

fn call_of(input: &[u8], caller: Option<Address>, rules: RuleSet) -> NativeCall<'_> {
    let block = NativeBlock { number: 100, timestamp: 1_700_000_000, minimum_gas_price: U256::ZERO };
    NativeCall {
        input,
        caller,
        value: U256::ZERO,
        kind: CallType::Call,
        depth: 0,
        transaction: None,
        block,
        rules,
        chain_id: 33,
    }
}

fn bridge(host: &mut MapHost, input: &str, caller: Address) -> Result<Bytes, NativeFailure> {
    let input = bytes(input);
    let call = call_of(&input, Some(caller), rules());
    let price = Precompile::Bridge.price(&call, host)?;
    Precompile::Bridge.run(&call, host, price)
}

fn word(number: u64) -> String {
    format!("{number:064x}")
}

/// All methods, with the signatures of the reference node.
const SIGNATURES: [&str; 83] = [
    "addFederatorPublicKey(bytes)",
    "addFederatorPublicKeyMultikey(bytes,bytes,bytes)",
    "addLockWhitelistAddress(string,int256)",
    "addOneOffLockWhitelistAddress(string,int256)",
    "addUnlimitedLockWhitelistAddress(string)",
    "addSignature(bytes,bytes[],bytes)",
    "commitFederation(bytes)",
    "createFederation()",
    "getBtcBlockchainBestChainHeight()",
    "getBtcBlockchainInitialBlockHeight()",
    "getBtcBlockchainBlockLocator()",
    "getBtcBlockchainBlockHashAtDepth(int256)",
    "getBtcTransactionConfirmations(bytes32,bytes32,uint256,bytes32[])",
    "getBtcTxHashProcessedHeight(string)",
    "getFederationAddress()",
    "getFederationCreationBlockNumber()",
    "getFederationCreationTime()",
    "getFederationSize()",
    "getFederationThreshold()",
    "getFederatorPublicKey(int256)",
    "getFederatorPublicKeyOfType(int256,string)",
    "getFeePerKb()",
    "getLockWhitelistAddress(int256)",
    "getLockWhitelistEntryByAddress(string)",
    "getLockWhitelistSize()",
    "getMinimumLockTxValue()",
    "getPendingFederationHash()",
    "getPendingFederationSize()",
    "getPendingFederatorPublicKey(int256)",
    "getPendingFederatorPublicKeyOfType(int256,string)",
    "getRetiringFederationAddress()",
    "getRetiringFederationCreationBlockNumber()",
    "getRetiringFederationCreationTime()",
    "getRetiringFederationSize()",
    "getRetiringFederationThreshold()",
    "getRetiringFederatorPublicKey(int256)",
    "getRetiringFederatorPublicKeyOfType(int256,string)",
    "getProposedFederationAddress()",
    "getProposedFederationSize()",
    "getProposedFederationCreationTime()",
    "getProposedFederationCreationBlockNumber()",
    "getProposedFederatorPublicKeyOfType(int256,string)",
    "getStateForBtcReleaseClient()",
    "getStateForSvpClient()",
    "getStateForDebugging()",
    "getLockingCap()",
    "getActivePowpegRedeemScript()",
    "getActiveFederationCreationBlockHeight()",
    "increaseLockingCap(int256)",
    "isBtcTxHashAlreadyProcessed(string)",
    "receiveHeaders(bytes[])",
    "receiveHeader(bytes)",
    "registerBtcTransaction(bytes,int256,bytes)",
    "releaseBtc()",
    "removeLockWhitelistAddress(string)",
    "rollbackFederation()",
    "setLockWhitelistDisableBlockDelay(int256)",
    "updateCollections()",
    "voteFeePerKbChange(int256)",
    "registerBtcCoinbaseTransaction(bytes,bytes32,bytes,bytes32,bytes32)",
    "hasBtcBlockCoinbaseTransactionInformation(bytes32)",
    "registerFastBridgeBtcTransaction(bytes,uint256,bytes,bytes32,bytes,address,bytes,bool)",
    "getBtcBlockchainBestBlockHeader()",
    "getBtcBlockchainBlockHeaderByHash(bytes32)",
    "getBtcBlockchainBlockHeaderByHeight(uint256)",
    "getBtcBlockchainParentBlockHeaderByHash(bytes32)",
    "getNextPegoutCreationBlockNumber()",
    "getQueuedPegoutsCount()",
    "getEstimatedFeesForNextPegOutEvent()",
    "getEstimatedFeesForPegOutAmount(uint256)",
    "setUnionBridgeContractAddressForTestnet(address)",
    "getUnionBridgeContractAddress()",
    "getUnionBridgeLockingCap()",
    "increaseUnionBridgeLockingCap(uint256)",
    "requestUnionBridgeRbtc(uint256)",
    "releaseUnionBridgeRbtc()",
    "setUnionBridgeTransferPermissions(bool,bool)",
    "getSuperEvent()",
    "setSuperEvent(bytes)",
    "clearSuperEvent()",
    "getBaseEvent()",
    "setBaseEvent(bytes)",
    "clearBaseEvent()",
];

/// The prices of methods differ from that of data that calls no method, so the table contains exactly these
/// methods.
#[test]
fn the_table_contains_every_method_with_its_selector() {
    let every: RuleSet = Rule::ALL.iter().copied().collect();
    let mut found = 0;
    for signature in SIGNATURES {
        let selector = &keccak256(signature)[..4];
        // Zero words decode as any arguments, because their offsets lead to empty values.
        let mut input = selector.to_vec();
        input.resize(4 + 32 * 10, 0);
        let data = 2 * input.len() as u64;
        let known = [every, RuleSet::NONE].into_iter().any(|rules| {
            let price = Precompile::Bridge.price(&call_of(&input, None, rules), &mut MapHost::default());
            // Methods with a base price of 23,000 are recognised by the price of their data.
            price.is_ok_and(|price| price.gas != 23_000 && price.gas >= data)
        });
        assert!(known, "{signature}");
        found += 1;
    }
    assert_eq!(found, 83);
}

/// Prices that a reference node charged for arguments that are cut off by the end of the data.
#[test]
fn truncated_arguments_have_the_prices_of_the_reference_node() {
    let price = |contract: Precompile, selector: &str, zeros: usize| {
        let input = bytes(&(selector.to_owned() + &"00".repeat(zeros)));
        contract.price(&call_of(&input, None, rules()), &mut MapHost::default()).unwrap().gas
    };
    // addSignature(bytes,bytes[],bytes): the third offset starts after the first 64 bytes.
    let signature = |zeros| price(Precompile::Bridge, "f10b9c59", zeros);
    assert_eq!([63, 64, 70].map(signature), [23_000, 70_136, 70_148]);
    // getMultisigScriptHash(int256,bytes[])
    let multisig = |zeros| price(Precompile::HdWalletUtils, "8ad13825", zeros);
    assert_eq!([0, 32, 33].map(multisig), [0, 20_000, 20_000]);
}

#[test]
fn the_vote_of_the_only_voter_sets_the_fee() {
    let mut host = MapHost::default();
    let vote = format!("0461313e{}", word(50_000));
    assert_eq!(bridge(&mut host, &vote, FEE_VOTER).unwrap(), bytes(&word(1)));
    let cell = |host: &mut MapHost, name| host.cell(low_address(BRIDGE), cell_slot(name));
    assert_eq!(cell(&mut host, "feePerKb"), bytes("82c350"));
    assert_eq!(cell(&mut host, "feePerKbElection"), bytes("c0"));
    let fee = bridge(&mut host, "724ec886", Address::ZERO).unwrap();
    assert_eq!(fee, bytes(&word(50_000)));

    // The vote of another account writes nothing.
    let mut host = MapHost::default();
    let refused = bridge(&mut host, &vote, Address::ZERO).unwrap();
    assert_eq!(U256::from_be_slice(&refused), U256::ZERO.wrapping_sub(U256::from(10)));
    assert!(host.cells.is_empty());
}

/// A state of contracts without cells.
struct Contracts(BTreeMap<Address, Bytes>);

impl EvmState for Contracts {
    fn account(&mut self, address: Address) -> Option<EvmAccount> {
        let code = self.0.get(&address).cloned().unwrap_or_default();
        let code_hash = if code.is_empty() { KECCAK256_EMPTY } else { keccak256(&code) };
        Some(EvmAccount { nonce: 0, balance: U256::ZERO, code_hash, code: None })
    }

    fn code(&mut self, code_hash: B256) -> Bytes {
        self.0.values().find(|code| keccak256(code) == code_hash).cloned().unwrap_or_default()
    }

    fn code_size(&mut self, code_hash: B256) -> usize {
        self.code(code_hash).len()
    }

    fn is_contract(&mut self, address: Address) -> bool {
        self.0.contains_key(&address)
    }

    fn code_overridden(&self, _: Address) -> bool {
        false
    }

    fn storage(&mut self, _: Address, _: U256) -> U256 {
        U256::ZERO
    }

    fn cell(&mut self, _: Address, _: U256) -> Bytes {
        Bytes::new()
    }

    fn block_hash(&mut self, _: u64) -> B256 {
        B256::ZERO
    }

    no_ancestors!();

    fn exhausted(&self) -> bool {
        false
    }
}

/// Number of Bridge cells that a call of `to` leaves written.
fn cells_after(contracts: &[(u64, String)], to: u64) -> usize {
    let state = Contracts(contracts.iter().map(|(low, code)| (low_address(*low), bytes(code))).collect());
    let run = RunContext::new(rules(), &|| false);
    let setting = RunEnvironment {
        chain_id: 33,
        number: 100,
        timestamp: 0,
        coinbase: Address::ZERO,
        difficulty: U256::ZERO,
        origin: low_address(0xaa),
    };
    let mut machine = Machine::new(state, setting, run);
    let first = FirstFrame {
        from: Some(low_address(0xaa)),
        to: Some(low_address(to)),
        value: U256::ZERO,
        data: Bytes::new(),
        gas: 1_000_000,
    };
    machine.run(first).unwrap();
    let cells = machine.written_cells();
    assert!(cells.iter().all(|(contract, _, bytes)| *contract == low_address(BRIDGE) && !bytes.is_empty()));
    cells.len()
}

#[test]
fn cells_are_reverted_with_the_frame_that_wrote_them() {
    // getQueuedPegoutsCount() writes two cells.
    let count = "63f4e4f9635f525f5f6004601c5f630100000661c350f1";
    let reverts = (0x0b, format!("{count}5f5ffd"));
    let stops = (0x0c, format!("{count}00"));
    let call = |low: u64| format!("5f5f5f5f5f60{low:02x}620186a0f150");
    assert_eq!(cells_after(std::slice::from_ref(&reverts), 0x0b), 0);
    assert_eq!(cells_after(std::slice::from_ref(&stops), 0x0c), 2);
    let both = (0x0d, format!("{}{}00", call(0x0b), call(0x0c)));
    assert_eq!(cells_after(&[reverts.clone(), stops.clone(), both], 0x0d), 2);
    let last_reverts = (0x0d, format!("{}{}5f5ffd", call(0x0c), call(0x0b)));
    assert_eq!(cells_after(&[reverts, stops, last_reverts], 0x0d), 0);
}

/// The store returns a header of height 4 for every hash, also for that of its parent.
#[test]
fn a_header_that_is_its_own_parent_ends_the_walk() {
    let cell = [&[0; 35], &[4][..], &[7; 80]].concat();
    let by_height = |height: u64| {
        let mut host = MapHost { any_cell: Some(cell.clone().into()), ..MapHost::default() };
        let header = bridge(&mut host, &format!("bd0c1fff{}", word(height)), FEE_VOTER).unwrap();
        U256::from_be_slice(&header[32..64])
    };
    assert_eq!(by_height(3), U256::ZERO);
    assert_eq!(by_height(5), U256::ZERO);
    assert_eq!(by_height(4), U256::from(80), "the length of a header");
}

/// On public networks, the Bridge's Bitcoin headers begin at the checkpoint of the genesis federation.
#[test]
fn the_bitcoin_headers_begin_at_the_checkpoint_of_the_network() {
    let ask = |chain_id, host: &mut MapHost, input: String| {
        let input = bytes(&input);
        let call = NativeCall { chain_id, ..call_of(&input, None, rules()) };
        let price = Precompile::Bridge.price(&call, host)?;
        Precompile::Bridge.run(&call, host, price)
    };
    for (chain_id, height) in [(30, 499_968), (31, 1_413_216), (33, 0)] {
        let initial = ask(chain_id, &mut MapHost::default(), "4897193f".into());
        assert_eq!(initial, Ok(bytes(&word(height))), "chain {chain_id}");
    }
    // Three headers above mainnet's checkpoint, and the header of the checkpoint itself.
    let mut host = MapHost::default();
    let (mut previous, mut hashes, mut cell) = ([0u8; 32], Vec::new(), Vec::new());
    for height in 499_968u32..=499_971 {
        let mut header = [0u8; 80];
        header[4..36].copy_from_slice(&previous);
        header[76..].copy_from_slice(&height.to_le_bytes());
        previous = Sha256::digest(Sha256::digest(header)).into();
        let shown: Vec<u8> = previous.iter().rev().copied().collect();
        cell = [&[0; 32][..], &height.to_be_bytes(), &header].concat();
        host.set_cell(low_address(BRIDGE), U256::from_be_slice(&shown), cell.clone().into());
        hashes.push(shown);
    }
    host.set_cell(low_address(BRIDGE), cell_slot("blockStoreChainHead"), cell.into());
    for depth in 0..=3usize {
        let found = ask(30, &mut host, format!("efd44418{}", word(depth as u64))).unwrap();
        assert_eq!(found[64..], hashes[3 - depth][..], "depth {depth}");
    }
    for below in [word(4), word(u64::MAX), "f".repeat(64)] {
        assert_eq!(ask(30, &mut host, format!("efd44418{below}")), Err(NativeFailure::Failed), "{below}");
    }
    // Without a head the store is not initialised, and its initialisation is not simulated.
    let none = ask(30, &mut MapHost::default(), format!("efd44418{}", word(0)));
    assert!(matches!(none, Err(NativeFailure::NotSimulated(_))), "{none:?}");
}

const NATIVE: [Precompile; 5] = [
    Precompile::Bridge,
    Precompile::Remasc,
    Precompile::HdWalletUtils,
    Precompile::BlockHeader,
    Precompile::Environment,
];

fn inputs() -> impl Strategy<Value = Vec<u8>> {
    let selector = prop_oneof![
        (0..SIGNATURES.len()).prop_map(|index| keccak256(SIGNATURES[index])[..4].to_vec()),
        proptest::collection::vec(any::<u8>(), 0..5),
    ];
    let word = prop_oneof![
        (0u64..400).prop_map(|number| U256::from(number).to_be_bytes::<32>()),
        any::<[u8; 32]>(),
    ];
    (selector, proptest::collection::vec(word, 0..14), 0usize..32).prop_map(|(mut input, words, cut)| {
        words.iter().for_each(|word| input.extend_from_slice(word));
        input.truncate(input.len().saturating_sub(cut));
        input
    })
}

/// Cells that contain RLP, a stored header, or nothing.
fn cells() -> impl Strategy<Value = Option<Bytes>> {
    let item = proptest::collection::vec(any::<u8>(), 0..40);
    let list = proptest::collection::vec(item, 0..5).prop_map(|items| {
        let mut payload = Vec::new();
        items.iter().for_each(|item| alloy_rlp::Encodable::encode(item.as_slice(), &mut payload));
        let mut out = Vec::new();
        alloy_rlp::Header { list: true, payload_length: payload.len() }.encode(&mut out);
        out.extend(payload);
        Bytes::from(out)
    });
    let stored = (0u8..5, any::<[u8; 80]>())
        .prop_map(|(height, header)| Bytes::from([&[0; 35], &[height][..], &header].concat()));
    prop_oneof![Just(None), list.prop_map(Some), stored.prop_map(Some)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// With any input and cells, the call does not panic, results are whole words, and a second call gives
    /// the same result.
    #[test]
    fn random_input_over_random_cells_never_panics(
        input in inputs(),
        cell in cells(),
        contract in 0..NATIVE.len(),
        height in prop_oneof![Just(0u64), 0u64..400],
        chain_id in 30u64..34,
        depth in 0usize..3,
    ) {
        let network = Network::regtest();
        let rules = if height == 0 { RuleSet::NONE } else { network.rules(height) };
        let call = NativeCall { depth, chain_id, ..call_of(&input, Some(FEE_VOTER), rules) };
        let run = || {
            let mut host = MapHost { any_cell: cell.clone(), ..MapHost::default() };
            let price = NATIVE[contract].price(&call, &mut host)?;
            let gas = price.gas;
            NATIVE[contract].run(&call, &mut host, price).map(|output| (gas, output, host.cells, host.logs))
        };
        let first = run();
        if let Ok((_, output, ..)) = &first {
            prop_assert_eq!(output.len() % 32, 0);
        }
        prop_assert_eq!(first, run());
    }
}
