//! Why Bitcoin data from another Rootlight or from a store does not decode.

use thiserror::Error;

use crate::consensus::bitcoin::PackedHeadersError;
use crate::types::FieldError;

/// Why headers or coinbases do not decode.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum ServedBitcoinError {
    #[error("Bitcoin's chain: not base64")]
    Base64,
    /// This version does not know the encoding (the first byte), or there are too few bytes.
    #[error("Bitcoin's chain: the form is not known, or it is cut off")]
    Form,
    #[error(transparent)]
    Packed(#[from] PackedHeadersError),
    /// The RLP list of coinbases does not have the required structure.
    #[error(transparent)]
    Rlp(#[from] FieldError),
    #[error("Bitcoin's chain: more than {asked} coinbases")]
    TooMany { asked: usize },
}
