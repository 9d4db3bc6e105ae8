//! Verifies headers: hash, proof of work, and the rules that need no other block.

use alloc::boxed::Box;
use alloc::format;

use super::header_fact::HeaderFact;
use super::header_rules::HeaderRules;
use super::input::{Input, list};
use super::input_error::InputError;
use super::report::{CheckFailure, NotProven, Report, Rule};
use crate::consensus::{
    HeaderCandidate, Network, Origin, PowError, RuleError, VerifiedHeader, verify_child, verify_standalone,
};
use crate::types::SealedHeader;

/// Most headers of one document: those of a week, at a block every 30 seconds, which fit the longest document.
const MAX_HEADERS: usize = 20_160;

/// Checks a header, or an array of consecutive headers.
pub(super) fn check(input: &Input<'_>, network: &Network, report: &mut Report) -> Result<(), CheckFailure> {
    match input {
        Input::Json(text) if text.starts_with('[') => check_run(text, network, report),
        single => {
            prove(single.header(network)?, network, report)?;
            report.not_proven.push(NotProven::HeaderChain);
            Ok(())
        }
    }
}

/// Proves one header. Returns `None` for the genesis header, which has no proof of work.
pub(super) fn prove(
    candidate: HeaderCandidate,
    network: &Network,
    report: &mut Report,
) -> Result<Option<VerifiedHeader>, CheckFailure> {
    let header = candidate.header();
    let (hash, number) = (header.hash(), header.number);
    report.passed(Rule::HeaderHash, format_args!("block {number} has the hash {hash}"));
    report.facts.push(HeaderFact::Header(Box::new(header.clone())).into());
    if hash == network.genesis_hash {
        report.facts.push(HeaderFact::Genesis(network.name.clone()).into());
        return Ok(None);
    }
    known_rules(header, network)?;
    let difficulty = header.difficulty.value();
    let mut rules = HeaderRules::alone(&candidate, network);
    let verified = VerifiedHeader::alone(candidate, network).map_err(refusal)?;
    report.passed(Rule::HeaderRules, format_args!("proof of work of block {number}"));
    if let Origin::Alone(seal) = verified.evidence().origin {
        rules.sealed(seal);
        report.header_rules = Some(rules);
        report.facts.push(HeaderFact::Sealed(seal, difficulty).into());
    }
    Ok(Some(verified))
}

/// The failure of a header rule, with a hint for the most frequent mistake: the raw headers of nodes, which cannot
/// prove their work.
fn refusal(error: RuleError) -> CheckFailure {
    match error {
        RuleError::Work(PowError::NoCoinbase) => {
            let hint = "no coinbase: the raw headers that nodes give out lack Merkle proof and coinbase; use the block's JSON";
            CheckFailure::new(Rule::HeaderRules, "merged mining", hint)
        }
        other => CheckFailure::new(Rule::HeaderRules, "header rules", other),
    }
}

/// Refuses blocks of a later network upgrade, whose rules this version does not know.
fn known_rules(header: &SealedHeader, network: &Network) -> Result<(), CheckFailure> {
    if network.needs_update_for(header.number) {
        let reason = format!("block {} is beyond the rules this version knows: update needed", header.number);
        return Err(CheckFailure::new(Rule::HeaderRules, "header rules", reason));
    }
    Ok(())
}

/// Checks consecutive headers: each by itself, and each as the child of the one before.
fn check_run(text: &str, network: &Network, report: &mut Report) -> Result<(), CheckFailure> {
    let members = list(text, "array of headers")?;
    let count = members.len();
    if members.is_empty() || count > MAX_HEADERS {
        return Err(InputError::Shape(format!("array of 1 to {MAX_HEADERS} headers, not {count}")).into());
    }
    let (mut first, mut last): (u64, Option<SealedHeader>) = (0, None);
    for member in members {
        let candidate = Input::of(member.get())?.header(network)?;
        let number = candidate.header().number;
        let broken = |error: RuleError| {
            CheckFailure::new(Rule::HeaderLinks, "header rules", format!("block {number}: {error}"))
        };
        known_rules(candidate.header(), network)?;
        match &last {
            None => {
                verify_standalone(&candidate, network, None).map_err(broken)?;
                first = number;
            }
            Some(parent) => {
                verify_child(&candidate, parent, network, None).map_err(broken)?;
            }
        }
        last = Some(candidate.into_header());
    }
    if let Some(last) = last {
        report.passed(Rule::HeaderLinks, format_args!("{count} headers, blocks {first} to {}", last.number));
        report.facts.push(HeaderFact::Headers { count, first, last: Box::new(last) }.into());
    }
    report.not_proven.push(NotProven::HeaderRunChain);
    Ok(())
}
