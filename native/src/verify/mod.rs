//! Offline checks of data someone handed over: what it proves, by which rule, or where it fails.
//!
//! Nothing is fetched and nothing is believed but the network's parameters and what the caller
//! states as trusted (a root). The formats are described in docs/verify.md.

mod account;
mod block;
mod header;
mod input;
mod receipt;
mod report;

use rootlight::consensus::Network;

pub use input::{Input, InputError};
pub use report::{Finding, Report};

/// What is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Subject {
    /// A header, or consecutive headers.
    Header,
    /// A block with transactions.
    Block,
    /// A receipt with its trie nodes.
    Receipt,
    /// An `eth_getProof` answer.
    Account,
}

/// Why a check ended without success; the report says what was proven before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The input has not the form this check takes.
    #[error("input: {0}")]
    Input(#[from] InputError),
    /// A rule failed.
    #[error("{step}: {reason}")]
    Rule {
        /// What was being checked.
        step: &'static str,
        /// The rule's own words, with the field.
        reason: String,
    },
}

impl VerifyError {
    fn rule(step: &'static str, reason: impl ToString) -> Self {
        Self::Rule { step, reason: reason.to_string() }
    }
}

/// Checks an input; the report is complete in both cases.
#[must_use]
pub fn verify(subject: Subject, input: &[u8], network: &Network) -> Report {
    let mut report = Report::new(subject, &network.name);
    let outcome = Input::parse(input).map_err(VerifyError::from).and_then(|input| match subject {
        Subject::Header => header::check(&input, network, &mut report),
        Subject::Block => block::check(&input, network, &mut report),
        Subject::Receipt => receipt::check(&input, network, &mut report),
        Subject::Account => account::check(&input, network, &mut report),
    });
    match outcome {
        Ok(()) => report,
        Err(error) => report.failed(error),
    }
}
