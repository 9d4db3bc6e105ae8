//! The Bridge's methods by which voters change one cell: the fee of Bitcoin transactions and the locking cap.

use super::super::NativeFailure;
use super::super::federation::{number, number_cell};
use super::super::session::{Bridge, BridgeResult};
use super::code;
use super::election::{Election, VotedCall};
use crate::evm::precompiles::abi::Arg;

/// Highest fee per 1,000 bytes that can be voted, in satoshi.
const MAX_FEE: i64 = 5_000_000;
/// The caller may not vote, or the number does not fit 64 bits.
const REFUSED: i64 = -10;

/// `voteFeePerKbChange`: 1 if the vote is counted; -1 for a fee of zero or less, or a second vote for the same fee; -2 above [`MAX_FEE`];
/// -10 if the caller may not vote, or the number has more than 64 bits.
pub(in super::super) fn fee_per_kb(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    const ELECTION: &str = "feePerKbElection";
    let voters = bridge.constants.fee_voters;
    let Some(fee) = args.first().and_then(Arg::signed) else { return code(REFUSED) };
    if !bridge.is_any(voters) {
        return code(REFUSED);
    }
    let fee = match fee {
        ..=0 => return code(-1),
        _ if fee > MAX_FEE => return code(-2),
        _ => fee.unsigned_abs(),
    };
    let mut election = Election::read(bridge, ELECTION, voters)?;
    let counted = election.vote(&VotedCall::new("setFeePerKb", &[&number_cell(fee)]), bridge.caller());
    if let Some(winner) = election.winner(voters).filter(|_| counted) {
        let voted = winner.arguments.first().and_then(|fee| number(fee)).unwrap_or(fee);
        bridge.save_named("feePerKb", number_cell(voted));
        election.clear();
    }
    election.save(bridge, ELECTION);
    code(if counted { 1 } else { -1 })
}

/// `increaseLockingCap`: 1 if the cap was set, which must be between the old cap and twice the old cap, else 0.
pub(in super::super) fn increase_cap(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    let cap = args.first().and_then(Arg::signed).filter(|cap| *cap > 0).ok_or(NativeFailure::Failed)?;
    if !bridge.is_any(bridge.constants.cap_voters) {
        return code(0);
    }
    let (cap, current) = (cap.unsigned_abs(), bridge.locking_cap());
    let raises = (current..=current.saturating_mul(2)).contains(&cap);
    bridge.save_named("lockingCap", number_cell(if raises { cap } else { current }));
    code(i64::from(raises))
}
