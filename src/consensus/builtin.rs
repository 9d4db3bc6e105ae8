//! The built-in networks. Heights and parameters are those of rskj 9.1 (June 2026).

use alloy_primitives::{address, b256, hex};

use super::bitcoin::BitcoinNetwork;
use super::network::{NEVER, Network, NetworkSpec, Params, WORK_START_HEADERS, WorkStart};
use super::rule::{Fork, Rule};
use crate::types::{B256, U256};

/// Hash of mainnet's block 0.
pub const MAINNET_GENESIS: B256 = b256!("f88529d4ab262c0f4d042e9d8d3f2472848eaafe1a9b7213f57617eb40a9f9e0");
/// Hash of the test network's block 0.
pub const TESTNET_GENESIS: B256 = b256!("cabb7fbe88cd6d922042a32ffc08ce8b1fbb37d650b9d4e7dbfe2a7469adfa42");
/// Hash of the developers' network's block 0.
pub const DEVNET_GENESIS: B256 = b256!("0e34a837e54432dac7a969304932164e820269c89f3ac0a202afbd5c1b70b7b6");
/// Hash of regtest's block 0.
pub const REGTEST_GENESIS: B256 = b256!("8ea789fabef0dd4946ed53f001e7b6f8a8d0c22a612a6099fc7f93c990af68fe");

/// Last mainnet height whose rules are known: about a year of blocks above the tip of November 2026 (9.44
/// million). The reference node has announced a hard fork at least once a year; every release raises this
/// height.
pub const MAINNET_KNOWN_UNTIL: u64 = 10_500_000;
/// Last height of the test network whose rules are known (see [`MAINNET_KNOWN_UNTIL`]).
pub const TESTNET_KNOWN_UNTIL: u64 = 9_500_000;

/// Mainnet's conditions for a start by work alone. The difficulty 4e21 is about half of the 7.45e21 of block 9,000,000 (June 2026; half
/// a year before, the difficulty was 1.36e22), so mainnet's difficulty may fall by half before this needs an update. `from` is the
/// number of the newest built-in checkpoint.
const MAINNET_WORK_START: WorkStart = WorkStart {
    // 4 * 10^21, as words of 64 bits.
    difficulty: U256::from_limbs([0xd726_b717_7a80_0000, 216, 0, 0]),
    from: 9_000_000,
    headers: WORK_START_HEADERS,
};

/// Heights of mainnet's hard forks.
const MAINNET_FORKS: &[(Fork, u64)] = &[
    (Fork::Bahamas, 3_397),
    (Fork::AfterBridgeSync, 370_000),
    (Fork::Orchid, 729_000),
    (Fork::Orchid060, 1_052_700),
    (Fork::Wasabi100, 1_591_000),
    (Fork::TwoToThree, 2_018_000),
    (Fork::Papyrus200, 2_392_700),
    (Fork::Iris300, 3_614_800),
    (Fork::Hop400, 4_598_500),
    (Fork::Hop401, 4_976_300),
    (Fork::Fingerroot500, 5_468_000),
    (Fork::Arrowhead600, 6_223_700),
    (Fork::Arrowhead631, 6_549_300),
    (Fork::Lovell700, 7_338_024),
    (Fork::Reed800, 8_052_200),
    (Fork::Vetiver900, 8_804_200),
];

/// Heights of the test network's hard forks. The second test network shares the first [`TESTNET_COMMON_FORKS`].
const TESTNET_FORKS: &[(Fork, u64)] = &[
    (Fork::Bahamas, 0),
    (Fork::AfterBridgeSync, 114_000),
    (Fork::Orchid, 0),
    (Fork::Orchid060, 0),
    (Fork::Wasabi100, 0),
    (Fork::TwoToThree, 504_000),
    (Fork::Papyrus200, 863_000),
    (Fork::Iris300, 2_060_500),
    (Fork::Hop400, 3_103_000),
    (Fork::Hop401, 3_362_200),
    (Fork::Fingerroot500, 4_015_800),
    (Fork::Arrowhead600, 4_927_100),
    (Fork::Lovell700, 6_110_487),
    (Fork::Reed800, 6_835_700),
    (Fork::Reed810, 7_139_600),
    (Fork::Vetiver900, 7_604_200),
];

/// The number of hard forks that both test networks have: those up to arrowhead600.
const TESTNET_COMMON_FORKS: usize = 12;

/// Rules whose heights on the test network differ from those of their hard forks. The second test network shares the
/// first [`TESTNET_COMMON_OVERRIDES`].
const TESTNET_OVERRIDES: &[(Rule, u64)] = &[
    (Rule::Rskip97, NEVER),
    (Rule::Rskip132, 43_550),
    (Rule::Rskip284, 2_581_800),
    (Rule::Rskip290, 2_581_800),
    (Rule::Rskip535, 7_604_200),
];

/// The number of entries of [`TESTNET_OVERRIDES`] that both test networks have.
const TESTNET_COMMON_OVERRIDES: usize = 4;

/// The hard forks of regtest, all at block 0. Devnet has the first [`DEVNET_FORKS`], so those that it lacks are last.
const REGTEST_FORKS: &[(Fork, u64)] = &[
    (Fork::Bahamas, 0),
    (Fork::Orchid, 0),
    (Fork::Orchid060, 0),
    (Fork::Wasabi100, 0),
    (Fork::TwoToThree, 0),
    (Fork::Papyrus200, 0),
    (Fork::Iris300, 0),
    (Fork::Hop400, 0),
    (Fork::Hop401, 0),
    (Fork::Fingerroot500, 0),
    (Fork::Arrowhead600, 0),
    (Fork::Lovell700, 0),
    (Fork::Reed800, 0),
    (Fork::Vetiver900, 0),
    (Fork::Reed810, 0),
    (Fork::Tbd1000, 0),
];

/// The number of devnet's hard forks.
const DEVNET_FORKS: usize = 14;

/// The two public keys whose signatures could replace proof of work before RSKIP-98 (fallback blocks), uncompressed. All networks have the
/// same keys (`Constants` of the reference node).
const FALLBACK_KEYS: [[u8; 65]; 2] = [
    hex!(
        "041e2b148c024770e19c4f31db2233cac791583df95b4d14a5e9fd4b38dc8254b3"
        "048f937f169446b19d2eca40db1dd93fab34c0cd8a310afd6e6211f9a89e4bca"
    ),
    hex!(
        "04b55031870df5de88bdb84f65bd1c6f8331c633e759caa5ac7cad3fa4f8a36791"
        "e995804bba1558ddcf330a67ff5bfa253fa1d8789735f97a97e849686527976e"
    ),
];

const fn u256(value: u64) -> U256 {
    U256::from_limbs([value, 0, 0, 0])
}

/// Parameters of the public test networks.
const TESTNET_PARAMS: Params = Params {
    duration_limit: 14,
    minimum_difficulty: u256(131_072),
    minimum_difficulty_rskip290: u256(550_000_000),
    fallback_max_difficulty: u256(14_000_000_000_000_000),
    difficulty_divisor: 50,
    difficulty_divisor_rskip156: 400,
    future_bound: 540,
    btc_time_bound: 300,
    btc_time_bound_rskip297: 7_200,
    remasc_maturity: 50,
    remasc_span: 10,
    labs: [address!("dabadabadabadabadabadabadabadabadaba0003"); 2],
    pegin_confirmations: 10,
    pegout_confirmations: 10,
    min_sequential_gas_limit: 10_000_000,
    fallback_keys: FALLBACK_KEYS,
    base_event_optional_below: 0,
};

const MAINNET: NetworkSpec<'static> = NetworkSpec {
    name: "mainnet",
    chain_id: 30,
    genesis_hash: MAINNET_GENESIS,
    params: Params {
        minimum_difficulty: u256(7_000_000_000_000_000),
        minimum_difficulty_rskip290: u256(7_000_000_000_000_000),
        future_bound: 60,
        btc_time_bound_rskip297: 300,
        remasc_maturity: 4_000,
        labs: [
            address!("14d3065c8eb89895f4df12450ec6b130049f8034"),
            address!("dcb12179ba4697350f66224c959bdd9c282818df"),
        ],
        pegin_confirmations: 100,
        pegout_confirmations: 4_000,
        ..TESTNET_PARAMS
    },
    known_until: Some(MAINNET_KNOWN_UNTIL),
    forks: MAINNET_FORKS,
    overrides: &[(Rule::Rskip536, 8_804_200)],
};

const TESTNET: NetworkSpec<'static> = NetworkSpec {
    name: "testnet",
    chain_id: 31,
    genesis_hash: TESTNET_GENESIS,
    params: Params { base_event_optional_below: 7_800_000, ..TESTNET_PARAMS },
    known_until: Some(TESTNET_KNOWN_UNTIL),
    forks: TESTNET_FORKS,
    overrides: TESTNET_OVERRIDES,
};

const TESTNET2: NetworkSpec<'static> = NetworkSpec {
    name: "testnet2",
    chain_id: 34,
    genesis_hash: TESTNET_GENESIS,
    params: Params { labs: [address!("dabadabadabadabadabadabadabadabadaba0004"); 2], ..TESTNET_PARAMS },
    known_until: None,
    forks: TESTNET_FORKS.split_at(TESTNET_COMMON_FORKS).0,
    overrides: TESTNET_OVERRIDES.split_at(TESTNET_COMMON_OVERRIDES).0,
};

const DEVNET: NetworkSpec<'static> = NetworkSpec {
    name: "devnet",
    chain_id: 32,
    genesis_hash: DEVNET_GENESIS,
    params: Params {
        minimum_difficulty_rskip290: u256(131_072),
        btc_time_bound_rskip297: 300,
        remasc_maturity: 20,
        labs: [address!("dabadabadabadabadabadabadabadabadaba0002"); 2],
        pegin_confirmations: 1,
        ..TESTNET_PARAMS
    },
    known_until: None,
    forks: REGTEST_FORKS.split_at(DEVNET_FORKS).0,
    overrides: &[(Rule::Rskip97, NEVER), (Rule::Umm, 1)],
};

const REGTEST: NetworkSpec<'static> = NetworkSpec {
    name: "regtest",
    chain_id: 33,
    genesis_hash: REGTEST_GENESIS,
    params: Params {
        duration_limit: 10,
        minimum_difficulty: u256(1),
        minimum_difficulty_rskip290: u256(1),
        fallback_max_difficulty: u256(0),
        difficulty_divisor: 2048,
        difficulty_divisor_rskip156: 2048,
        future_bound: 0,
        btc_time_bound_rskip297: 300,
        remasc_maturity: 10,
        remasc_span: 5,
        labs: [address!("dabadabadabadabadabadabadabadabadaba0001"); 2],
        pegin_confirmations: 3,
        pegout_confirmations: 3,
        min_sequential_gas_limit: 6_800_000,
        ..TESTNET_PARAMS
    },
    known_until: None,
    forks: REGTEST_FORKS,
    overrides: &[
        (Rule::Rskip97, NEVER),
        (Rule::Umm, 1),
        (Rule::Rskip144, 1),
        (Rule::Rskip351, 1),
        (Rule::Rskip535, 1),
    ],
};

impl Network {
    /// The production network, chain id 30.
    #[must_use]
    pub fn mainnet() -> Self {
        let mut network = Self::new(&MAINNET);
        network.work_start = Some(MAINNET_WORK_START);
        network.bitcoin = Some(BitcoinNetwork::MAINNET);
        network
    }

    /// The public test network, chain id 31.
    #[must_use]
    pub fn testnet() -> Self {
        Self::new(&TESTNET)
    }

    /// The second test network, chain id 34, with the genesis of the first one and no hard fork after
    /// arrowhead600.
    #[must_use]
    pub fn testnet2() -> Self {
        Self::new(&TESTNET2)
    }

    /// The developers' network, chain id 32. Hard forks that are missing from the reference node's table of this network are never
    /// active.
    #[must_use]
    pub fn devnet() -> Self {
        Self::new(&DEVNET)
    }

    /// The local network of the reference node, chain id 33: all rules active, difficulty 1, no timestamp
    /// rules.
    #[must_use]
    pub fn regtest() -> Self {
        let mut network = Self::new(&REGTEST);
        network.bitcoin = Some(BitcoinNetwork::REGTEST);
        network
    }

    /// Returns the built-in network with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "mainnet" => Self::mainnet(),
            "testnet" => Self::testnet(),
            "testnet2" => Self::testnet2(),
            "devnet" => Self::devnet(),
            "regtest" => Self::regtest(),
            _ => return None,
        })
    }

    /// The public network, or the regtest network, with this chain id.
    #[must_use]
    pub fn by_chain_id(id: u64) -> Option<Self> {
        let names = ["mainnet", "testnet", "devnet", "regtest"];
        names.into_iter().filter_map(Self::by_name).find(|network| network.chain_id == id)
    }
}
