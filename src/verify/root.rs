//! The root against which a proof is checked: stated by the document, or proven by a header.

use alloc::format;

use super::input::DocumentMembers;
use super::input_error::InputError;
use super::report::{CheckFailure, NotProven, Report};
use super::root_kind::RootKind;
use super::{header, header_fact::HeaderFact, input::Input, report::Rule};
use crate::consensus::HeaderCandidate;
use crate::consensus::Network;
use crate::types::B256;

/// A root and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    /// The document states the root.
    Stated(B256),
    /// A header in the document proves the root; the document may also state it.
    Header(HeaderCandidate, Option<B256>),
}

impl Root {
    /// Reads the root of a document: stated, or in a header.
    pub(super) fn read(
        given: &DocumentMembers<'_>,
        kind: RootKind,
        network: Option<&Network>,
    ) -> Result<Self, CheckFailure> {
        let stated = match kind {
            RootKind::State => given.state_root,
            RootKind::Receipts => given.receipts_root,
        };
        let stated = stated.map(|raw| super::input::hash(raw, kind.field())).transpose()?;
        match (given.header, stated) {
            (None, Some(root)) => Ok(Self::Stated(root)),
            (None, None) => Err(InputError::Shape(format!("{} or header is missing", kind.field())).into()),
            (Some(raw), stated) => Self::header(raw.get(), stated, network),
        }
    }

    fn header(text: &str, stated: Option<B256>, network: Option<&Network>) -> Result<Self, CheckFailure> {
        let network = network.ok_or(InputError::HeaderNotChecked)?;
        Ok(Self::Header(Input::of(text)?.header(network)?, stated))
    }

    /// Returns the root and, if a header proves it, the hash of the block.
    pub(super) fn prove(
        self,
        kind: RootKind,
        network: Option<&Network>,
        report: &mut Report,
    ) -> Result<(B256, Option<B256>), CheckFailure> {
        match self {
            Self::Stated(root) => {
                report.not_proven.push(NotProven::Root(kind));
                Ok((root, None))
            }
            Self::Header(candidate, stated) => {
                let network = network.ok_or(InputError::HeaderNotChecked)?;
                prove_by_header(candidate, stated, kind, network, report)
            }
        }
    }
}

/// Proves a header and takes the root from it, which must be the stated one if there is one.
fn prove_by_header(
    candidate: HeaderCandidate,
    stated: Option<B256>,
    kind: RootKind,
    network: &Network,
    report: &mut Report,
) -> Result<(B256, Option<B256>), CheckFailure> {
    let (root, block) = (kind.of(candidate.header()), candidate.header().hash());
    header::prove(candidate, network, report)?;
    if let Some(stated) = stated.filter(|stated| *stated != root) {
        let reason = format!("stated as {stated}, the header has {root}");
        return Err(CheckFailure::new(Rule::HeaderValues, kind.field(), reason));
    }
    report.facts.push(HeaderFact::Root(kind, root).into());
    Ok((root, Some(block)))
}
