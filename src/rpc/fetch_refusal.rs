//! When a session stops fetching the facts that a message misses: the limits of a message, and facts that no upstream could
//! prove.

use alloc::{collections::BTreeSet, string::String, vec::Vec};

use crate::{
    engine::Refusal,
    light::{AttemptFailure, Cause, FactFailure},
    state::{Fact, Facts},
};

/// Most rounds of fetching for one message. A chain of dependent storage reads needs one round for each read; each round takes
/// at least one request's time, so that the limit bounds how long a message lasts.
pub const MAX_ROUNDS: usize = 256;

/// Most facts that a message may miss at once; a call that misses more is refused. Once the calls of a batch miss as many, the
/// later calls wait for the next round. The limit bounds the requests of one round.
pub const MAX_FACTS: usize = 4096;

/// Most requests to upstreams for the facts of one message. The logs of 2,000 blocks of the main network, of which each receipt is
/// requested, take some 10,000. Without this limit, each of [`MAX_ROUNDS`] rounds could request [`MAX_FACTS`] facts.
pub const MAX_MESSAGE_REQUESTS: usize = 32_768;

/// Most bytes of blocks and state that one message keeps until it is answered, approximately: the logs of 2,000
/// blocks of the main network take some 30 MiB.
pub const MAX_FACT_BYTES: usize = 48 * 1024 * 1024;

/// Facts that could not be proven, each with the reason.
pub(super) type Failures = Vec<(Fact, FactFailure)>;

/// Why a fact could not be proven; `None` if no upstream has failed to prove it.
pub(super) fn failure<'a>(failed: &'a [(Fact, FactFailure)], fact: &Fact) -> Option<&'a FactFailure> {
    failed.iter().find(|(other, _)| other == fact).map(|(_, failure)| failure)
}

/// Why these missing facts must not be fetched, if there is a reason. `failed` are the facts that could not be proven, `fetched`
/// those that were proven; `rounds` and `requests` count those of the message so far; `bytes` is the memory of its facts.
pub(super) fn fetch_refusal(
    facts: &Facts,
    failed: &[(Fact, FactFailure)],
    fetched: &BTreeSet<Fact>,
    (rounds, requests): (usize, usize),
    bytes: usize,
) -> Option<Refusal> {
    let failed = failed.iter().filter(|(fact, _)| facts.contains(fact));
    // The first in the order of facts, so that the error does not depend on the order of responses.
    if let Some((_, failure)) = failed.min_by_key(|(fact, _)| *fact) {
        return Some(Refusal::Unproven(failure.clone()));
    }
    if facts.len() > MAX_FACTS {
        return Some(Refusal::TooManyFacts { max: MAX_FACTS });
    }
    if bytes > MAX_FACT_BYTES {
        return Some(Refusal::TooManyBytes { max: MAX_FACT_BYTES });
    }
    if requests >= MAX_MESSAGE_REQUESTS {
        return Some(Refusal::TooManyRequests { max: MAX_MESSAGE_REQUESTS });
    }
    if rounds >= MAX_ROUNDS {
        return Some(Refusal::TooManyRounds { rounds: MAX_ROUNDS });
    }
    // A fact that was proven and is still missing would be requested without end. No upstream has caused it, so that the
    // attempt in the error has neither name nor method.
    let still_missing = facts.iter().find(|fact| fetched.contains(fact))?;
    let cause = Cause::Refuted("it was fetched and proven, but is still missing".into());
    let attempts = alloc::vec![AttemptFailure { upstream: 0, name: String::new(), method: "-", cause }];
    Some(Refusal::Unproven(FactFailure { target: alloc::format!("{still_missing}"), attempts }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::B256;

    /// Requesting the fact again would go on without end.
    #[test]
    fn a_fact_that_is_still_missing_after_it_was_fetched_is_refused() {
        let facts = Facts::from([Fact::Location(B256::ZERO), Fact::Header(B256::ZERO)]);
        let refused =
            |fetched: &[Fact]| fetch_refusal(&facts, &[], &fetched.iter().copied().collect(), (0, 0), 0);
        assert!(refused(&[]).is_none() && refused(&[Fact::Header(B256::repeat_byte(1))]).is_none());
        let refusal = refused(&[Fact::Header(B256::ZERO)]).map(|refusal| alloc::format!("{refusal}"));
        assert!(refusal.as_ref().is_some_and(|words| words.contains("still missing")), "{refusal:?}");
    }

    /// The number of requests is limited too, but blocks differ in size by a factor of a thousand.
    #[test]
    fn blocks_and_state_of_a_message_are_limited_in_bytes() {
        let facts = Facts::from([Fact::Location(B256::ZERO)]);
        let refused = |bytes| fetch_refusal(&facts, &[], &BTreeSet::new(), (0, 0), bytes);
        assert_eq!(refused(MAX_FACT_BYTES), None);
        assert_eq!(refused(MAX_FACT_BYTES + 1), Some(Refusal::TooManyBytes { max: MAX_FACT_BYTES }));
    }
}
