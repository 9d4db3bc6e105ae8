//! Offline verification: proves the contents of a document without any upstream.
//!
//! A document is a header, a block, a receipt with its trie nodes, or an `eth_getProof` result. Only the network's
//! parameters and the root that the document states are trusted; the root is proven too if the document contains the
//! header. docs/verify.md describes the formats. The command line and the package both call this module, so they accept
//! and refuse the same documents.
//!
//! | file | contents |
//! |---|---|
//! | `input`, `input_error`, `subject` | documents, and why they cannot be read |
//! | `header`, `block`, `receipt`, `account` | the checks of each subject |
//! | `root`, `root_kind` | the root under which a receipt or an account is proven |
//! | `fact`, `header_fact`, `finding` | proven facts, as values and in words |
//! | `header_rules` | names of the consensus rules that a header was checked by |
//! | `report`, `render` | the report: checks (a `Rule` is a kind of check), facts, and the failure; as text and as JSON |

mod account;
#[cfg(test)]
mod account_test;
mod block;
mod fact;
mod finding;
mod header;
mod header_fact;
mod header_rules;
mod input;
mod input_error;
mod receipt;
mod render;
mod report;
mod root;
mod root_kind;
mod subject;

use crate::consensus::Network;

pub use account::{AccountProof, SlotProof};
pub use fact::{ProvenFact, SlotContent};
pub use finding::Finding;
pub use header_fact::HeaderFact;
pub use header_rules::HeaderRules;
pub use input_error::{InputError, MAX_INPUT_BYTES};
pub use receipt::ReceiptProof;
pub use report::{Check, CheckFailure, NotProven, Report, Rule};
pub use root::Root;
pub use root_kind::RootKind;
pub use subject::DocumentSubject;

use input::Input;

/// Verifies a document. The report states what is proven, and which check failed if one did.
#[must_use]
pub fn verify(subject: DocumentSubject, document: &[u8], network: &Network) -> Report {
    match subject {
        DocumentSubject::Header => verify_header(document, network),
        DocumentSubject::Block => verify_block(document, network),
        DocumentSubject::Receipt => verify_receipt(document, Some(network)),
        DocumentSubject::Account => verify_account(document, Some(network)),
    }
}

/// Verifies a header, or an array of consecutive headers, oldest first.
#[must_use]
pub fn verify_header(document: &[u8], network: &Network) -> Report {
    run(DocumentSubject::Header, document, Some(network), |input, report| {
        header::check(input, network, report)
    })
}

/// Verifies a block: header, transactions, and uncles and receipts as far as they are given.
#[must_use]
pub fn verify_block(document: &[u8], network: &Network) -> Report {
    run(DocumentSubject::Block, document, Some(network), |input, report| block::check(input, network, report))
}

/// Verifies one receipt under a receipts root. A header in the document needs a network.
#[must_use]
pub fn verify_receipt(document: &[u8], network: Option<&Network>) -> Report {
    run(DocumentSubject::Receipt, document, network, |input, report| receipt::check(input, network, report))
}

/// Verifies an account and its storage slots under a state root. A header in the document needs a network.
#[must_use]
pub fn verify_account(document: &[u8], network: Option<&Network>) -> Report {
    run(DocumentSubject::Account, document, network, |input, report| account::check(input, network, report))
}

/// Reads a document and runs the check of its subject. An error of either becomes the report's failure.
fn run(
    subject: DocumentSubject,
    document: &[u8],
    network: Option<&Network>,
    check: impl FnOnce(&Input<'_>, &mut Report) -> Result<(), CheckFailure>,
) -> Report {
    let mut report = Report::new(subject, network.map(|network| network.name.as_str()));
    let outcome =
        Input::parse(document).map_err(CheckFailure::from).and_then(|input| check(&input, &mut report));
    report.failed = outcome.err();
    report
}
