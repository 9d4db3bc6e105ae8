//! Asks the hot store whether messages of a key are within its limits: the script `take.lua` counts there for all front ends.

use std::sync::LazyLock;

use super::key_copies;
use super::limits::{Demand, KeyLimits};
use crate::store::{HotStore, HotStoreError, Script};

/// The script that counts. Its first lines explain its arguments and its answer.
static TAKE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("take.lua")));

/// A question to the store.
pub(super) struct LimitQuery {
    pub(super) limits: KeyLimits,
    pub(super) demands: Vec<Demand>,
    /// The wanted lease, a part of the limits that this front end may use without asking: nanoseconds of the rate, and requests
    /// of the day.
    pub(super) lease: (u64, u64),
    /// Requests of today that were admitted without the store, and that the store shall count now.
    pub(super) unreported: u64,
}

/// The store's verdict on a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The message is within the limits, and counted.
    Admitted,
    /// The message fits the rate after so many nanoseconds.
    Wait(u64),
    /// The requests of the day are used up.
    Day,
}

/// The verdict on a message, and the counters after it.
pub(super) struct MessageVerdict {
    pub(super) verdict: Verdict,
    /// Nanoseconds until the whole burst is available.
    pub(super) used: u64,
    /// Requests of the day.
    pub(super) count: u64,
}

/// An answer of the store.
pub(super) struct LimitReply {
    /// Seconds since 1970, by the store's clock.
    pub(super) unix: u64,
    /// The lease that the store gave: nanoseconds of the rate, and requests of the day.
    pub(super) lease: (u64, u64),
    pub(super) verdicts: Vec<MessageVerdict>,
}

/// Asks the store about messages of the key with this id.
pub(super) async fn ask(
    store: &HotStore,
    id: &str,
    question: &LimitQuery,
) -> Result<LimitReply, HotStoreError> {
    let KeyLimits { rate, per_day } = question.limits;
    // The script's numbers for no limit are -1 and 0.
    let most = per_day.map_or(-1, super::rows::to_bigint);
    let mut arguments = vec![rate.map_or(0, |rate| rate.size()).to_string()];
    arguments.extend([question.lease.0.to_string(), most.to_string()]);
    arguments.extend([question.lease.1.to_string(), question.unreported.to_string()]);
    for demand in &question.demands {
        arguments.extend([demand.cost.to_string(), demand.requests.to_string()]);
    }
    let arguments: Vec<Vec<u8>> = arguments.into_iter().map(String::into_bytes).collect();
    let numbers: Vec<i64> = store.script(&TAKE, &key_copies::counters_name(id), &arguments).await?;
    let reply = parse(&numbers).filter(|reply| reply.verdicts.len() == question.demands.len());
    reply.ok_or_else(|| HotStoreError::Answer("the counters of a key".to_owned()))
}

/// Reads the script's answer.
fn parse(numbers: &[i64]) -> Option<LimitReply> {
    let (head, rest) = numbers.split_at_checked(3)?;
    let count = |number: &i64| u64::try_from(*number).ok();
    let message = |part: &[i64]| {
        let verdict = match part.first()? {
            0 => Verdict::Admitted,
            -1 => Verdict::Day,
            wait => Verdict::Wait(count(wait)?),
        };
        Some(MessageVerdict { verdict, used: count(part.get(1)?)?, count: count(part.get(2)?)? })
    };
    let verdicts = rest.chunks(3).map(message).collect::<Option<Vec<_>>>()?;
    let lease = (count(head.get(1)?)?, count(head.get(2)?)?);
    Some(LimitReply { unix: count(head.first()?)?, lease, verdicts })
}
