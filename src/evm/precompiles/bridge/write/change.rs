//! Votes on a new federation, up to its proposal (RSKIP-419): the federation's voters create a pending federation, add its members, and
//! commit it, or roll it back. The hand-over to the new federation, and commits under older rules, are not simulated.

use alloc::vec::Vec;

use alloy_primitives::U256;

use super::super::NativeFailure;
use super::super::federation::{Federation, FederationMember, P2SH_ERP, P2WSH_ERP, STANDARD, number_cell};
use super::super::members::{encode_pending, hash};
use super::super::session::{Bridge, BridgeResult};
use super::code;
use super::election::{Election, VotedCall};
use super::events::COMMIT;
use crate::consensus::Rule;
use crate::evm::precompiles::abi::Arg;
use crate::evm::precompiles::hd_wallet::compress;
use crate::types::insert_sorted;

/// Name of the cell with the open votes.
const ELECTION: &str = "federationElection";
/// The vote is counted, and carried out if it has won.
const DONE: i64 = 1;
// Error codes of the methods; the meaning of most depends on the method.

/// The caller is not authorised or has voted already, or keys are invalid.
const REFUSED: i64 = -10;
/// A federation is already pending (`createFederation`), or none is pending (the other methods).
const PENDING: i64 = -1;
/// A federation awaits activation, or a key is already used, or there are too few members.
const NOT_READY: i64 = -2;
/// A federation is retiring, or the hash is not that of the pending federation.
const MISMATCH: i64 = -3;
/// A federation has already been proposed.
const PROPOSED: i64 = -4;

/// `createFederation`
pub(in super::super) fn create(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    vote(bridge, &VotedCall::new("create", &[]))
}

/// `addFederatorPublicKeyMultikey`
pub(in super::super) fn add(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    let keys: Vec<&[u8]> = args.iter().map(Arg::bytes).collect();
    vote(bridge, &VotedCall::new("add-multi", &keys))
}

/// `commitFederation`
pub(in super::super) fn commit(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    vote(bridge, &VotedCall::new("commit", &[args.first().map_or(&[][..], Arg::bytes)]))
}

/// `rollbackFederation`
pub(in super::super) fn roll_back(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    vote(bridge, &VotedCall::new("rollback", &[]))
}

/// Counts a vote if its proposal could be carried out now, and carries it out once it has won.
fn vote(bridge: &mut Bridge<'_>, proposal: &VotedCall) -> BridgeResult {
    let voters = bridge.constants.federation_voters;
    let caller = bridge.caller();
    if !bridge.is_any(voters) {
        return code(REFUSED);
    }
    // With `dry`, neither cells nor this empty election are changed.
    let dry = true;
    let checked = bridge.carry_out(proposal, dry, &mut Election::default())?;
    if checked != DONE {
        return code(checked);
    }
    let mut election = Election::read(bridge, ELECTION, voters)?;
    let mut result = checked;
    if !election.vote(proposal, caller) {
        result = REFUSED;
    } else if let Some(winner) = election.winner(voters) {
        result = bridge.carry_out(&winner, !dry, &mut election)?;
        if let Some(winner) = election.winner(voters) {
            election.close(&winner);
        }
    }
    election.save(bridge, ELECTION);
    code(result)
}

impl Bridge<'_> {
    /// Carries out a proposal and closes the votes in `election`, or with `dry` only checks whether it could be carried out. Returns
    /// [`DONE`] or an error code.
    fn carry_out(
        &mut self,
        proposal: &VotedCall,
        dry: bool,
        election: &mut Election,
    ) -> Result<i64, NativeFailure> {
        let arguments: Vec<&[u8]> = proposal.arguments.iter().map(Vec::as_slice).collect();
        match (proposal.function.as_slice(), arguments.as_slice()) {
            (b"create", _) => Ok(self.create_pending(dry, election)),
            (b"add-multi", [btc, rsk, mst]) => Ok(self.add_member(dry, [btc, rsk, mst])),
            (b"commit", [hash]) => self.commit_pending(dry, hash, election),
            (b"rollback", _) => Ok(self.roll_pending_back(dry, election)),
            // The methods above vote for these four only; another call can win only if it is in the cell.
            _ => Ok(REFUSED),
        }
    }

    /// Creates a pending federation without members.
    fn create_pending(&mut self, dry: bool, election: &mut Election) -> i64 {
        if self.pending_members().is_some() {
            return PENDING;
        }
        if self.proposed_federation().is_some() {
            return PROPOSED;
        }
        let has_old = !self.named("oldFederation").is_empty();
        let new = Federation::stored("newFederation", &mut |slot| self.read(slot));
        let (constants, rules, height) = (self.constants, self.call.rules, self.call.block.number);
        match new {
            Some(new) if has_old && !new.is_active(constants, rules, height) => return NOT_READY,
            Some(_) if has_old => return MISMATCH,
            _ => {}
        }
        if !dry {
            self.save_pending(Some(&[]));
            election.clear();
        }
        DONE
    }

    /// Adds a member with these keys, for BTC, RSK and MST, to the pending federation.
    fn add_member(&mut self, dry: bool, keys: [&[u8]; 3]) -> i64 {
        let [Some(btc), Some(rsk), Some(mst)] =
            keys.map(|key| compress(key).and_then(|key| key.as_slice().try_into().ok()))
        else {
            return REFUSED;
        };
        let Some(mut members) = self.pending_members() else { return PENDING };
        if members.iter().any(|member| member.btc == btc || member.rsk == rsk || member.mst == mst) {
            return NOT_READY;
        }
        if !dry {
            insert_sorted(&mut members, FederationMember { btc, rsk, mst });
            self.save_pending(Some(&members));
        }
        DONE
    }

    /// Makes the pending federation, whose hash the voters have named, the proposed one.
    fn commit_pending(
        &mut self,
        dry: bool,
        wanted: &[u8],
        election: &mut Election,
    ) -> Result<i64, NativeFailure> {
        if wanted.len() != 32 {
            return Err(NativeFailure::Failed);
        }
        let Some(members) = self.pending_members() else { return Ok(PENDING) };
        if members.len() < 2 {
            return Ok(NOT_READY);
        }
        if hash(&members) != wanted {
            return Ok(MISMATCH);
        }
        if dry {
            return Ok(DONE);
        }
        if !self.has(Rule::Rskip419) {
            return Err(NativeFailure::NotSimulated("commitFederation before RSKIP-419"));
        }
        self.propose(members)?;
        self.save_pending(None);
        election.clear();
        Ok(DONE)
    }

    /// Writes the proposed federation, and its event.
    fn propose(&mut self, members: Vec<FederationMember>) -> Result<(), NativeFailure> {
        let block = self.call.block;
        let created = block.timestamp.saturating_mul(1_000);
        let format = if self.has(Rule::Rskip305) { P2WSH_ERP } else { P2SH_ERP };
        let proposed = Federation { members, created, block: block.number, format };
        self.save_named("proposedFederation", proposed.encode());
        self.save_named("proposedFederationFormatVersion", number_cell(format));
        self.log_commit(&proposed)
    }

    /// Writes the event of a commit: BTC keys and address of the active and of the new federation, and the height of activation.
    fn log_commit(&mut self, new: &Federation) -> Result<(), NativeFailure> {
        let old = self.active_federation();
        let keys = |federation: &Federation| -> Vec<u8> {
            federation.members.iter().flat_map(|member| member.btc).collect()
        };
        let address = |federation: &Federation| federation.address(self.constants, self.call.rules);
        let (old_address, new_address) = (address(&old), address(new));
        let age = self.constants.activation_age(self.call.rules);
        let active = U256::from(self.call.block.number.saturating_add(age));
        let tails = [&keys(&old)[..], old_address.as_bytes(), &keys(new), new_address.as_bytes()];
        self.event(COMMIT, None, &[None, None, None, None, Some(active)], &tails);
        Ok(())
    }

    /// Removes the pending federation.
    fn roll_pending_back(&mut self, dry: bool, election: &mut Election) -> i64 {
        if self.pending_members().is_none() {
            return PENDING;
        }
        if !dry {
            self.save_pending(None);
            election.clear();
        }
        DONE
    }

    /// Writes the pending federation, or removes it for `None`. The version cell is written in either case.
    fn save_pending(&mut self, members: Option<&[FederationMember]>) {
        let cell = members.map(encode_pending).unwrap_or_default();
        self.save_named("pendingFederation", cell);
        self.save_named("pendingFederationFormatVersion", number_cell(STANDARD));
    }
}
