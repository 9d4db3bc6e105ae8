//! Constants of the Bridge on each network, as in the reference node (rskj). The federation is the group of members whose keys hold the
//! bitcoins of the Bridge. A peg-in sends bitcoins to the federation, a peg-out requests bitcoins back.

use alloy_primitives::{Address, address, hex};

use crate::consensus::{Rule, RuleSet};

/// A compressed public key.
pub(super) type PublicKey = [u8; 33];

/// Bitcoin's networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bitcoin {
    Main,
    Test,
    Regtest,
}

/// Keys in the script of federations of format 2000 (`federation.rs`) on testnet before RSKIP-284, sorted: all of them had the same
/// script, whoever their members were. Three of the five keys must sign.
pub(super) const TEST_EARLY_KEYS: [PublicKey; 5] = [
    hex!("0208f40073a9e43b3e9103acec79767a6de9b0409749884e989960fee578012fce"),
    hex!("0225e892391625854128c5c4ea4340de0c2a70570f33db53426fc9c746597a03f4"),
    hex!("02afc230c2d355b1a577682b07bc2646041b5d0177af0f98395a46018da699b6da"),
    hex!("0344a3c38cd59afcba3edcebe143e025574594b001700dec41e59409bdbd0f2a09"),
    hex!("039a060badbeb24bee49eb2063f616c0f0f0765d4ca646b20a88ce828f259fcdb9"),
];

/// Constants of one network. Amounts are in satoshi, ages and periods in Rootstock blocks.
pub(super) struct Constants {
    /// Bitcoin's network to which the Bridge leads.
    pub(super) bitcoin: Bitcoin,
    /// BTC keys of the members of the genesis federation, sorted. Their other two keys
    /// ([`FederationMember`](super::federation::FederationMember)) are the same.
    pub(super) genesis_keys: &'static [PublicKey],
    /// Rootstock accounts of `genesis_keys`, in their order, computed in advance to save time on a development chain, which pays them in
    /// every block. Empty on other networks, where the accounts are computed from the keys.
    pub(super) genesis_accounts: &'static [Address],
    /// Format of the genesis federation's script; `federation.rs` has the constants.
    pub(super) genesis_format: u64,
    /// Creation time of the genesis federation; see [`lowest_height`](super::checkpoints::lowest_height) for
    /// its unit.
    pub(super) genesis_time: u64,
    /// Emergency keys, sorted.
    pub(super) emergency_keys: &'static [PublicKey],
    /// Number of Bitcoin blocks that an output must be old before the emergency keys can spend it.
    pub(super) emergency_delay: u32,
    /// Age at which a new federation becomes active: before RSKIP-383, before RSKIP-419, and from it on.
    activation_ages: [u64; 3],
    /// Number of blocks that a proposed federation has for its validation.
    pub(super) validation_period: u64,
    /// Number of Bitcoin confirmations after which a peg-in is final.
    pub(super) pegin_confirmations: i64,
    /// Smallest peg-in before RSKIP-219 and from it on.
    minimum_pegin: [u64; 2],
    /// Peg-outs had to exceed this amount before RSKIP-219.
    pub(super) legacy_minimum_pegout: u64,
    /// Smallest peg-out from RSKIP-219 on.
    pub(super) minimum_pegout: u64,
    /// Amount that a peg-out must leave after its fee, in percent of the fee.
    pub(super) pegout_gap: u64,
    /// Number of blocks between two Bitcoin transactions with peg-outs, each of which pays all peg-outs that wait (RSKIP-271).
    pub(super) pegout_interval: u64,
    /// Bitcoin height from which blocks are indexed by height (`store.rs`).
    pub(super) index_height: i64,
    /// Number of blocks below the newest Bitcoin block that are found without the index, by parent hashes.
    pub(super) index_depth: i64,
    /// Fee per 1,000 bytes of Bitcoin transactions until the voters change it.
    pub(super) initial_fee: u64,
    /// Locking cap, the most that the Bridge accepts in all, until it is raised.
    pub(super) initial_cap: u64,
    /// Accounts that vote on the federation, by majority.
    pub(super) federation_voters: &'static [Address],
    /// Accounts that vote on the fee, by majority.
    pub(super) fee_voters: &'static [Address],
    /// Accounts that can raise the locking cap, each of them alone.
    pub(super) cap_voters: &'static [Address],
    /// Account that edits the whitelist of Bitcoin addresses that may peg in.
    pub(super) whitelist_voter: Address,
    /// The accounts that set the address, the locking cap and the permissions of the union bridge contract (RSKIP-502), in this order.
    pub(super) union_voters: [Address; 3],
}

impl Constants {
    /// The constants for a chain id: 30 is mainnet, 31 testnet, any other a private network.
    pub(super) fn of(chain_id: u64) -> &'static Self {
        match chain_id {
            30 => &MAIN,
            31 => &TEST,
            _ => &REGTEST,
        }
    }

    /// Age at which a new federation becomes active.
    pub(super) fn activation_age(&self, rules: RuleSet) -> u64 {
        let [legacy, old, new] = self.activation_ages;
        match (rules.has(Rule::Rskip383), rules.has(Rule::Rskip419)) {
            (false, _) => legacy,
            (true, false) => old,
            (true, true) => new,
        }
    }

    /// Smallest peg-in.
    pub(super) fn minimum_pegin(&self, rules: RuleSet) -> u64 {
        let [legacy, new] = self.minimum_pegin;
        if rules.has(Rule::Rskip219) { new } else { legacy }
    }

    /// Version bytes of addresses: for a key and for a script.
    pub(super) fn address_versions(&self) -> [u8; 2] {
        match self.bitcoin {
            Bitcoin::Main => [0, 5],
            Bitcoin::Test | Bitcoin::Regtest => [111, 196],
        }
    }
}

/// Satoshi in a bitcoin.
const BTC: u64 = 100_000_000;

/// Constants of regtest and of development chains.
static REGTEST: Constants = Constants {
    bitcoin: Bitcoin::Regtest,
    genesis_keys: &[
        hex!("02cd53fc53a07f211641a677d250f6de99caf620e8e77071e811a28b3bcddf0be1"),
        hex!("0362634ab57dae9cb373a5d536e66a8c4f67468bbcfb063809bab643072d78a124"),
        hex!("03c5946b3fbae03a654237da863c9ed534e0878657175b132b8ca630f245df04db"),
    ],
    genesis_accounts: &[
        address!("6b045752f4d650a510a353bbf7e52988331e7f5b"),
        address!("85845342b0d5260d516d6da5280a7df9a96d1925"),
        address!("138161cda86b55c0de1bc3a0adef974633c85fbe"),
    ],
    genesis_format: 4000,
    genesis_time: 1_451_606_400_000,
    emergency_keys: &[
        hex!("029cecea902067992d52c38b28bf0bb2345bda9b21eca76b16a17c477a64e43301"),
        hex!("03284178e5fbcc63c54c3b38e3ef88adf2da6c526313650041b0ef955763634ebd"),
        hex!("03ab0e2cd7ed158687fc13b88019990860cdb72b1f5777b58513312550ea1584bc"),
        hex!("03b9fc46657cf72a1afa007ecf431de1cd27ff5cc8829fa625b66ca47b967e6b24"),
    ],
    emergency_delay: 500,
    activation_ages: [10, 150, 150],
    validation_period: 125,
    pegin_confirmations: 3,
    minimum_pegin: [1_000_000, 500_000],
    legacy_minimum_pegout: 500_000,
    minimum_pegout: 250_000,
    pegout_gap: 20,
    pegout_interval: 50,
    index_height: 10,
    index_depth: 5,
    initial_fee: 100_000,
    initial_cap: 1_000 * BTC,
    federation_voters: &[
        address!("5252403bca6ac3c104abdd320a736fa38282045d"),
        address!("0d8c44bd578a4e7148d1758b3332b529e93e48c1"),
        address!("566bca18df14ed75efcc1a8a4f3947e81132dbbc"),
        address!("2e7c9159614ddc0185e335d3343e92700c3e5a2d"),
        address!("f0652637df184eca87e6bde29893825721dfb79f"),
    ],
    fee_voters: &[address!("53f8f6dabd612b6137215ddd7758bb5cdd638922")],
    cap_voters: &[address!("6913bd4715eff3b25501f3212f15df38296d1f21")],
    whitelist_voter: address!("87d2a0f33744929da08b65fd62b627ea52b25f8e"),
    union_voters: [
        address!("6c9dfd950bf748bb26f893f7e5f693c7f60a8f85"),
        address!("ff6f4ff09c54561e1476203e56fcfc834911aa64"),
        address!("ff6f4ff09c54561e1476203e56fcfc834911aa64"),
    ],
};

const TEST_FEE_VOTERS: &[Address] = &[
    address!("4502d34c8e889b2be7e1bfe1a645df8fa3f9204b"),
    address!("f7d8befef29878e5c35fee23e6889ed88afb56b8"),
    address!("9e472a8b3f3c95736b0b255db2b7ba38c687c751"),
];

/// Constants of testnet.
static TEST: Constants = Constants {
    bitcoin: Bitcoin::Test,
    genesis_keys: &[
        hex!("02afc230c2d355b1a577682b07bc2646041b5d0177af0f98395a46018da699b6da"),
        hex!("0344a3c38cd59afcba3edcebe143e025574594b001700dec41e59409bdbd0f2a09"),
        hex!("034844a99cd7028aa319476674cc381df006628be71bc5593b8b5fdb32bb42ef85"),
        hex!("039a060badbeb24bee49eb2063f616c0f0f0765d4ca646b20a88ce828f259fcdb9"),
    ],
    genesis_accounts: &[],
    genesis_format: 1000,
    genesis_time: 1_538_967_600,
    emergency_keys: &[
        hex!("0216c23b2ea8e4f11c3f9e22711addb1d16a93964796913830856b568cc3ea21d3"),
        hex!("0275562901dd8faae20de0a4166362a4f82188db77dbed4ca887422ea1ec185f14"),
        hex!("034db69f2112f4fb1bb6141bf6e2bd6631f0484d0bd95b16767902c9fe219d4a6f"),
    ],
    emergency_delay: 52_560,
    activation_ages: [60, 120, 2_400],
    validation_period: 2_000,
    pegin_confirmations: 10,
    minimum_pegin: [1_000_000, 500_000],
    legacy_minimum_pegout: 500_000,
    minimum_pegout: 250_000,
    pegout_gap: 80,
    pegout_interval: 360,
    index_height: 2_039_594,
    index_depth: 4_320,
    initial_fee: 100_000,
    initial_cap: 200 * BTC,
    federation_voters: &[
        address!("5990aaedfccc88e2f7321a5b8d8db1f6e64abf03"),
        address!("112140a53537b49788456daffda2e20efd1865cd"),
        address!("5526529f386c4c77044f1c29bb965b37a7767c3d"),
    ],
    fee_voters: TEST_FEE_VOTERS,
    cap_voters: TEST_FEE_VOTERS,
    whitelist_voter: address!("54fdb399cf235c9b0d464ab4055af9251883bbfe"),
    union_voters: [
        address!("54fdb399cf235c9b0d464ab4055af9251883bbfe"),
        address!("1a8109af0f019ed3045fbcdf45e5e90d6b6aafaf"),
        address!("8db1f83e8119e4dce5bc708ec2f4390ffd910b19"),
    ],
};

const MAIN_FEE_VOTERS: &[Address] = &[
    address!("a02db0ed94a5894bc6f9079bb9a2d93ada1917f3"),
    address!("180a7edda4e640ea5a3e495e17a1efad260c39e9"),
    address!("8418edc8fea47183116b4c8cd6a12e51a7e169c1"),
];

/// Constants of mainnet.
static MAIN: Constants = Constants {
    bitcoin: Bitcoin::Main,
    genesis_keys: &[
        hex!("0245ef34f5ee218005c9c21227133e8568a4f3f11aeab919c66ff7b816ae1ffeea"),
        hex!("02481f02b7140acbf3fcdd9f72cf9a7d9484d8125e6df7c9451cfa55ba3b077265"),
        hex!("02550cc87fa9061162b1dd395a16662529c9d8094c0feca17905a3244713d65fe8"),
        hex!("02566d5ded7c7db1aa7ee4ef6f76989fb42527fcfdcddcd447d6793b7d869e46f7"),
        hex!("027319afb15481dbeb3c426bcc37f9a30e7f51ceff586936d85548d9395bcc2344"),
        hex!("0294c817150f78607566e961b3c71df53a22022a80acbb982f83c0c8baac040adc"),
        hex!("02ac1901b6fba2c1dbd47d894d2bd76c8ba1d296d65f6ab47f1c6b22afb53e73eb"),
        hex!("02c6018fcbd3e89f3cf9c7f48b3232ea3638eb8bf217e59ee290f5f0cfb2fb9259"),
        hex!("031aabbeb9b27258f98c2bf21f36677ae7bae09eb2d8c958ef41a20a6e88626d26"),
        hex!("0340df69f28d69eef60845da7d81ff60a9060d4da35c767f017b0dd4e20448fb44"),
        hex!("0355a2e9bf100c00fc0a214afd1bf272647c7824eb9cb055480962f0c382596a70"),
        hex!("0372cd46831f3b6afd4c044d160b7667e8ebf659d6cb51a825a3104df6ee0638c6"),
        hex!("03b53899c390573471ba30e5054f78376c5f797fda26dde7a760789f02908cbad2"),
        hex!("03b65694ccccda83cbb1e56b31308acd08e993114c33f66a456b627c2c1c68bed6"),
        hex!("03f909ae15558c70cc751aff9b1f495199c325b13a9e5b934fd6299cd30ec50be8"),
    ],
    genesis_accounts: &[],
    genesis_format: 1000,
    genesis_time: 1_514_948_400,
    emergency_keys: &[
        hex!("02370a9838e4d15708ad14a104ee5606b36caaaaf739d833e67770ce9fd9b3ec80"),
        hex!("0257c293086c4d4fe8943deda5f890a37d11bebd140e220faa76258a41d077b4d4"),
        hex!("03c2660a46aa73078ee6016dee953488566426cf55fc8011edd0085634d75395f9"),
        hex!("03cd3e383ec6e12719a6c69515e5559bcbe037d0aa24c187e1e26ce932e22ad7b3"),
    ],
    emergency_delay: 52_560,
    activation_ages: [18_500, 40_320, 40_320],
    validation_period: 20_000,
    pegin_confirmations: 100,
    minimum_pegin: [1_000_000, 500_000],
    legacy_minimum_pegout: 800_000,
    minimum_pegout: 400_000,
    pegout_gap: 80,
    pegout_interval: 360,
    index_height: 696_022,
    index_depth: 4_320,
    initial_fee: 500_000,
    initial_cap: 300 * BTC,
    federation_voters: &[
        address!("56bc5087ac97bc85a877bd20dfef910b78b1dc5a"),
        address!("6fe1cd06a80fa52eb34d7e4d1845881c2b5de89a"),
        address!("d41f4d4c7fc8d5fa9468d0c466c9a726397f91b6"),
    ],
    fee_voters: MAIN_FEE_VOTERS,
    cap_voters: MAIN_FEE_VOTERS,
    whitelist_voter: address!("6ba9d41b07da470fe340cbd439a42538795eb75b"),
    // Placeholders, as in the reference node: RSKIP-502, which adds the methods of these voters, has no height on mainnet.
    union_voters: [Address::ZERO; 3],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted() {
        for constants in [&MAIN, &TEST, &REGTEST] {
            assert!(constants.genesis_keys.is_sorted());
            assert!(constants.emergency_keys.is_sorted());
        }
    }
}
