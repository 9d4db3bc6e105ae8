//! Headers: hash, merged mining, and the rules a header can be held to without the chain.

use rootlight::consensus::{
    verify_child, verify_standalone, Candidate, Network, Origin, PowError, RuleError, Seal, VerifiedHeader,
};
use rootlight::types::{HeaderVersion, SealedHeader};
use serde_json::value::RawValue;

use super::input::{Input, InputError};
use super::{Report, VerifyError};

/// Most headers of one input: a week of blocks; the input's size is limited as well.
const MAX_HEADERS: usize = 20_160;

/// Checks a header, or an array of consecutive ones.
pub(super) fn check(input: &Input, network: &Network, report: &mut Report) -> Result<(), VerifyError> {
    match input {
        Input::Json(raw) if raw.get().starts_with('[') => check_run(raw, network, report),
        single => {
            prove(single.header(network)?, network, report)?;
            report.not_proven(
                "that the header is on the heaviest chain, and that its difficulty follows from its parent",
            );
            Ok(())
        }
    }
}

/// Proves one header and tells the report; `None` for the genesis, which nobody mined.
pub(super) fn prove(
    candidate: Candidate,
    network: &Network,
    report: &mut Report,
) -> Result<Option<VerifiedHeader>, VerifyError> {
    let header = candidate.header();
    let version = match header.shape.version {
        HeaderVersion::V0 => 0,
        HeaderVersion::V1 => 1,
        HeaderVersion::V2 => 2,
    };
    let rule = format!("keccak-256 of the header, version {version}");
    report.proven("block hash", format_args!("{} (block {})", header.hash(), header.number), &rule);
    if header.hash() == network.genesis_hash {
        report.proven("genesis", &network.name, "the network's known genesis hash");
        return Ok(None);
    }
    known_rules(header, network)?;
    let verified = VerifiedHeader::alone(candidate, network).map_err(refusal)?;
    if let Origin::Alone(seal) = verified.evidence().origin {
        tell_seal(&verified, seal, report);
    }
    Ok(Some(verified))
}

/// The commonest mistake gets a hint: nodes' raw headers cannot prove their work.
fn refusal(error: RuleError) -> VerifyError {
    match error {
        RuleError::Work(PowError::NoCoinbase) => {
            let hint = "no coinbase: the raw headers that nodes give out lack Merkle proof and coinbase; use the block's JSON";
            VerifyError::rule("merged mining", hint)
        }
        other => VerifyError::rule("header rules", other),
    }
}

fn tell_seal(header: &SealedHeader, seal: Seal, report: &mut Report) {
    let difficulty = header.difficulty.value();
    match seal {
        Seal::MergedMining => {
            let rule =
                "merged mining: the Bitcoin header meets the target, its coinbase commits to this header";
            report.proven("work", format_args!("difficulty {difficulty:#x}"), rule);
        }
        Seal::FallbackSignature => {
            report.proven("seal", "signed by a fallback key", "fallback mining (until RSKIP-98)");
        }
    }
    report.proven(
        "header fields",
        "gas limit, gas used, extra data, times, edges",
        "rules that need no other block",
    );
}

/// Rules of blocks yet to be designed are unknown to this version.
fn known_rules(header: &SealedHeader, network: &Network) -> Result<(), VerifyError> {
    if network.needs_update_for(header.number) {
        let reason = format!("block {} is beyond the rules this version knows: update needed", header.number);
        return Err(VerifyError::rule("header rules", reason));
    }
    Ok(())
}

/// Consecutive headers: each by itself, and each as the child of the one before.
fn check_run(raw: &RawValue, network: &Network, report: &mut Report) -> Result<(), VerifyError> {
    let shape = |error: &dyn std::fmt::Display| InputError::Shape(format!("array of headers: {error}"));
    let members: Vec<&RawValue> = serde_json::from_str(raw.get()).map_err(|error| shape(&error))?;
    if members.is_empty() || members.len() > MAX_HEADERS {
        return Err(
            InputError::Shape(format!("array of 1 to {MAX_HEADERS} headers, not {}", members.len())).into()
        );
    }
    let (mut first, mut last): (Option<u64>, Option<SealedHeader>) = (None, None);
    let count = members.len();
    for member in members {
        let candidate = Input::of(member)?.header(network)?;
        let at = |error: &dyn std::fmt::Display| {
            VerifyError::rule("header rules", format!("block {}: {error}", candidate.header().number))
        };
        known_rules(candidate.header(), network)?;
        match &last {
            None => verify_standalone(&candidate, network, None).map_err(|error| at(&error))?,
            Some(parent) => verify_child(&candidate, parent, network, None).map_err(|error| at(&error))?,
        };
        first = first.or(Some(candidate.header().number));
        last = Some(candidate.into_header());
    }
    let (Some(first), Some(last)) = (first, last) else { return Ok(()) };
    report.proven(
        "headers",
        format_args!("{count}, blocks {first} to {}", last.number),
        "merged mining and header rules of each",
    );
    report.proven(
        "links",
        format_args!("the last is {}", last.hash()),
        "parent hash, number, difficulty, gas limit and minimum gas price from the parent",
    );
    report.not_proven("that the first header is on the chain you mean, and that this is the heaviest one");
    Ok(())
}
