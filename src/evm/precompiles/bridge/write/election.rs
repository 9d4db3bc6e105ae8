//! Open votes of the Bridge, as its cells store them. Voters vote for a call of a function of the Bridge; a call with the votes of more than
//! half of them wins.

use alloc::vec::Vec;

use alloy_primitives::Address;

use super::super::NativeFailure;
use super::super::session::Bridge;
use crate::types::insert_sorted;
use crate::types::rlp::{self, RlpReader};

/// The subject of a vote: a function and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VotedCall {
    pub(super) function: Vec<u8>,
    pub(super) arguments: Vec<Vec<u8>>,
}

impl VotedCall {
    /// A call of a function with these arguments.
    pub(super) fn new(function: &str, arguments: &[&[u8]]) -> Self {
        Self {
            function: function.as_bytes().to_vec(),
            arguments: arguments.iter().map(|argument| argument.to_vec()).collect(),
        }
    }

    /// Reads `[function, [argument, ..]]`.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = RlpReader::list(bytes, "vote").ok()?;
        let function = fields.next_str("function").ok()?.to_vec();
        let mut list = fields.next_list("arguments").ok()?;
        let mut arguments = Vec::new();
        while !list.is_empty() {
            arguments.push(list.next_str("argument").ok()?.to_vec());
        }
        Some(Self { function, arguments })
    }

    /// Writes `[function, [argument, ..]]`.
    fn encode(&self) -> Vec<u8> {
        let mut arguments = Vec::new();
        self.arguments.iter().for_each(|argument| rlp::put_str(&mut arguments, argument));
        let mut items = Vec::new();
        rlp::put_str(&mut items, &self.function);
        rlp::put_list(&mut items, &arguments);
        rlp::list_of([items.as_slice()])
    }

    /// The sort key in the cell: all bytes concatenated and compared as Java's signed bytes.
    fn order(&self) -> Vec<i8> {
        let arguments = self.arguments.iter().flatten();
        self.function.iter().chain(arguments).map(|byte| *byte as i8).collect()
    }
}

/// The open votes of one kind: each proposed call with the accounts that have voted for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Election(Vec<(VotedCall, Vec<Address>)>);

impl Election {
    /// Reads a cell. Fails if it contains a voter who is no longer authorised.
    pub(super) fn read(
        bridge: &mut Bridge<'_>,
        cell: &str,
        voters: &[Address],
    ) -> Result<Self, NativeFailure> {
        let bytes = bridge.named(cell);
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let election = Self::decode(&bytes).ok_or(NativeFailure::Failed)?;
        match election.0.iter().flat_map(|(_, voted)| voted).all(|voter| voters.contains(voter)) {
            true => Ok(election),
            false => Err(NativeFailure::Failed),
        }
    }

    /// Reads `[call, [voter, ..], ..]`.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut items = RlpReader::list(bytes, "election").ok()?;
        let mut votes = Vec::new();
        while !items.is_empty() {
            let proposal = VotedCall::decode(items.next_raw("proposal").ok()?)?;
            let mut list = items.next_list("voters").ok()?;
            let mut voters = Vec::new();
            while !list.is_empty() {
                voters.push(list.next_str("voter").ok()?.try_into().ok()?);
            }
            votes.push((proposal, voters));
        }
        Some(Self(votes))
    }

    /// Writes the cell: an empty list if there are no open votes.
    pub(super) fn save(self, bridge: &mut Bridge<'_>, cell: &str) {
        let mut votes: Vec<(Vec<i8>, &VotedCall, &[Address])> = Vec::new();
        for (proposal, voters) in &self.0 {
            let order = proposal.order();
            votes.insert(votes.partition_point(|(known, ..)| *known <= order), (order, proposal, voters));
        }
        let mut items = Vec::new();
        for (_, proposal, voters) in votes {
            items.extend(proposal.encode());
            let (mut sorted, mut list) = (Vec::new(), Vec::new());
            voters.iter().for_each(|voter| insert_sorted(&mut sorted, voter));
            sorted.iter().for_each(|voter| rlp::put_str(&mut list, voter.as_slice()));
            rlp::put_list(&mut items, &list);
        }
        bridge.save_named(cell, rlp::list_of([items.as_slice()]));
    }

    /// Counts a vote. Returns `false` if the voter has already voted for the proposal.
    pub(super) fn vote(&mut self, proposal: &VotedCall, voter: Address) -> bool {
        if !self.0.iter().any(|(open, _)| open == proposal) {
            self.0.push((proposal.clone(), Vec::new()));
        }
        let voted = self.0.iter_mut().find(|(open, _)| open == proposal);
        match voted {
            Some((_, voted)) if !voted.contains(&voter) => {
                voted.push(voter);
                true
            }
            _ => false,
        }
    }

    /// The proposal with the votes of more than half of the voters, if any.
    pub(super) fn winner(&self, voters: &[Address]) -> Option<VotedCall> {
        let won = self.0.iter().find(|(_, voted)| voted.len() > voters.len() / 2);
        won.map(|(proposal, _)| proposal.clone())
    }

    /// Removes a proposal with its votes.
    pub(super) fn close(&mut self, proposal: &VotedCall) {
        self.0.retain(|(open, _)| open != proposal);
    }

    /// Removes all proposals.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_election_is_decoded_and_can_be_won() {
        let recorded = "dfc886637265617465c0d594ffffffffffffffffffffffffffffffffffffffff";
        let bytes = hex::decode(recorded).unwrap();
        let mut election = Election::decode(&bytes).unwrap();
        let create = VotedCall::new("create", &[]);
        assert!(!election.vote(&create, Address::repeat_byte(0xff)), "already counted");
        assert!(election.vote(&create, Address::ZERO));
        let voters: Vec<Address> = (0..3).map(Address::repeat_byte).collect();
        assert_eq!(election.winner(&voters), Some(create.clone()));
        election.close(&create);
        assert_eq!(election, Election::default());
    }
}
