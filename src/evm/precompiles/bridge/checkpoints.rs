//! The first Bitcoin header of the Bridge, with which its Bitcoin chain begins (`store.rs`).
//!
//! The reference node ships files of Bitcoin headers for Bitcoin's main and test networks, one every 2,016
//! blocks (`rskbitcoincheckpoints/org.bitcoin.production.checkpoints`, `org.bitcoin.test.checkpoints`). The
//! Bridge starts at the last of them before the creation of the active federation. On the regression test
//! network it starts at genesis.

use super::NativeFailure;
use super::constants::Bitcoin;

/// Least distance between a federation's creation and its checkpoint, in the unit of the time passed to [`lowest_height`]: a week, if
/// that is seconds.
const MARGIN: i64 = 86_400 * 7;
/// Number of Bitcoin blocks between two checkpoints.
const STEP: i64 = 2_016;

/// Bitcoin height of the last checkpoint in the main network's file, the only one needed: the genesis federation is younger.
const MAIN_HEIGHT: i64 = 499_968;
/// Time of the header at [`MAIN_HEIGHT`], in seconds since 1970.
const MAIN_TIME: i64 = 1_513_605_320;

/// Bitcoin height of the test network's checkpoint whose header has the first of [`TEST_TIMES`].
const TEST_HEIGHT: i64 = 1_413_216;
/// Times of the headers from that checkpoint to the end of the file, in seconds since 1970. The oldest
/// federation, that of genesis, needs the first one.
#[rustfmt::skip]
const TEST_TIMES: [u32; 51] = [
    1536797113, 1538931612, 1538933314, 1538934962, 1538936454, 1538938520, 1538942332, 1538951327, 1538958458,
    1538969722, 1538998093, 1539137337, 1539441751, 1539885052, 1541035150, 1542206747, 1543315333, 1544602833,
    1545757292, 1546969628, 1548126042, 1549280514, 1550471312, 1550472011, 1550472722, 1550473424, 1550474145,
    1550475069, 1550475795, 1550478210, 1550484796, 1550500454, 1550544220, 1550688527, 1551156857, 1551935665,
    1553416509, 1554528295, 1555727478, 1555728833, 1555730461, 1555732186, 1555733870, 1555736804, 1555740520,
    1555745752, 1555752198, 1555767649, 1555830476, 1556106698, 1556877853,
];

/// Bitcoin height of the Bridge's first header. `created` is the creation time of the active federation as
/// stored in its cell. The unit is meant to be milliseconds. Federations elected before RSKIP-419 and the genesis federations of mainnet
/// and testnet store seconds, and the reference node compares either with the times of Bitcoin headers, which are seconds.
///
/// # Errors
/// [`NativeFailure::NotSimulated`] for a federation older than the network's genesis federation. No chain has one.
pub(super) fn lowest_height(bitcoin: Bitcoin, created: u64) -> Result<i64, NativeFailure> {
    let time = created.cast_signed().wrapping_sub(MARGIN);
    let height = match bitcoin {
        Bitcoin::Regtest => Some(0),
        Bitcoin::Main => (time >= MAIN_TIME).then_some(MAIN_HEIGHT),
        Bitcoin::Test => {
            let passed = TEST_TIMES.partition_point(|header| i64::from(*header) <= time) as i64;
            let steps = passed.checked_sub(1).filter(|steps| *steps >= 0);
            steps.map(|steps| TEST_HEIGHT.saturating_add(steps.saturating_mul(STEP)))
        }
    };
    height.ok_or(NativeFailure::NotSimulated(
        "the Bitcoin headers of a federation before the genesis federation",
    ))
}

#[cfg(test)]
mod tests {
    use super::super::constants::Constants;
    use super::*;

    fn height(bitcoin: Bitcoin, created: u64) -> Option<i64> {
        lowest_height(bitcoin, created).ok()
    }

    #[test]
    fn genesis_federations_start_at_the_first_checkpoint_listed_here() {
        for (chain_id, expected) in [(30, 499_968), (31, 1_413_216), (33, 0)] {
            let constants = Constants::of(chain_id);
            assert_eq!(height(constants.bitcoin, constants.genesis_time), Some(expected));
        }
    }

    #[test]
    fn later_federations_start_at_the_last_checkpoint_before_them() {
        let week = 604_800;
        assert_eq!(height(Bitcoin::Test, 1_538_931_612 + week - 1), Some(1_413_216));
        assert_eq!(height(Bitcoin::Test, 1_538_931_612 + week), Some(1_415_232));
        assert_eq!(height(Bitcoin::Test, 1_556_877_853 + week), Some(1_514_016));
        assert_eq!(height(Bitcoin::Main, 1_513_605_320 + week), Some(499_968));
        // Elected after RSKIP-419: the time is in milliseconds.
        assert_eq!(height(Bitcoin::Test, 1_760_000_000_000), Some(1_514_016));
        assert_eq!(height(Bitcoin::Main, 1_760_000_000_000), Some(499_968));
    }

    #[test]
    fn federations_older_than_genesis_are_reported_as_not_simulated() {
        for (bitcoin, first) in [(Bitcoin::Main, 1_513_605_320), (Bitcoin::Test, 1_536_797_113)] {
            for created in [0, first + 604_800 - 1, u64::MAX] {
                assert!(
                    matches!(lowest_height(bitcoin, created), Err(NativeFailure::NotSimulated(_))),
                    "{created}"
                );
            }
        }
    }
}
