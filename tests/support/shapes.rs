//! Header layouts defined by hand, so that the header tests do not depend on the network tables.

use rootlight::types::{HeaderShape, HeaderVersion};

/// Regtest with every rule on: version 2 from block 1.
pub fn regtest(number: u64) -> HeaderShape {
    let version = if number == 0 { HeaderVersion::V0 } else { HeaderVersion::V2 };
    shape(version, number != 0, number >= 449)
}

/// Regtest without RSKIP-144, RSKIP-351 and RSKIP-535: version 0 throughout.
pub fn regtest_v0(number: u64) -> HeaderShape {
    shape(HeaderVersion::V0, number != 0, number >= 449)
}

/// Mainnet: version 0 throughout.
pub fn mainnet(number: u64) -> HeaderShape {
    let before_rskip92 = number < 729_000;
    HeaderShape {
        hash_covers_proof: before_rskip92,
        ..shape(HeaderVersion::V0, number >= 2_392_700, number >= 1_591_000)
    }
}

/// Testnet: version 1 from 7,139,600, version 2 from 7,604,200.
pub fn testnet(number: u64) -> HeaderShape {
    let version = match number {
        0..=7_139_599 => HeaderVersion::V0,
        7_139_600..=7_604_199 => HeaderVersion::V1,
        _ => HeaderVersion::V2,
    };
    HeaderShape {
        base_event_optional: (7_604_200..7_800_000).contains(&number),
        ..shape(version, number >= 863_000, number >= 449)
    }
}

/// A layout in which only the version and two rules vary.
pub fn shape(version: HeaderVersion, umm_root: bool, fork_detection: bool) -> HeaderShape {
    HeaderShape {
        version,
        umm_root,
        edges: version != HeaderVersion::V0,
        hash_covers_proof: false,
        fork_detection,
        base_event_optional: false,
    }
}
