//! Errors of single fields, shared by the RLP and JSON readers of this layer.

use thiserror::Error;

/// A field that breaks a rule of its encoding.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field}: {rule}")]
pub struct FieldError {
    /// The field, with its object: `header.difficulty`.
    pub field: &'static str,
    /// The rule that the field breaks.
    pub rule: FieldRule,
}

impl FieldError {
    /// Names the field that broke `rule`.
    pub const fn new(field: &'static str, rule: FieldRule) -> Self {
        Self { field, rule }
    }
}

/// The first error of several fields. With it, the code that reads an object of many fields need not return after each of them, and stays
/// small.
#[derive(Default)]
pub(crate) struct FirstError(Option<FieldError>);

impl FirstError {
    /// The value, or the default one in place of an error.
    pub(crate) fn of<T: Default>(&mut self, read: Result<T, FieldError>) -> T {
        match read {
            Ok(value) => value,
            Err(error) => {
                self.0.get_or_insert(error);
                T::default()
            }
        }
    }

    /// The first error, if there was one.
    pub(crate) fn done(self) -> Result<(), FieldError> {
        self.0.map_or(Ok(()), Err)
    }
}

/// The encoding rules of fields.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum FieldRule {
    /// The RLP item is malformed or not in its shortest form.
    #[error("malformed RLP: {0}")]
    Rlp(alloy_rlp::Error),
    /// Bytes follow the last item.
    #[error("{0} bytes after the end")]
    Trailing(usize),
    /// The list has a different number of items than the object has fields.
    #[error("{found} items, expected {expected}")]
    Items { expected: usize, found: usize },
    /// A field of fixed length has another length.
    #[error("{found} bytes, expected {expected}")]
    Length { expected: usize, found: usize },
    #[error("{found} bytes, at most {limit}")]
    TooLong { limit: usize, found: usize },
    #[error("number of more than {0} bits")]
    TooLarge(u32),
    /// The number has leading zero bytes where its encoding allows none.
    #[error("number not in its shortest form")]
    NotMinimal,
    /// The signed number is below zero.
    #[error("negative number")]
    Negative,
    /// A list of 16-bit values has an odd number of bytes.
    #[error("odd number of bytes")]
    OddLength,
    /// The value is not the one that the rules at this height demand.
    #[error("value {found}, expected {expected}")]
    Value { expected: u64, found: u64 },
    /// The value is neither of the two that the field can have.
    #[error("value {found}, expected {} or {}", expected[0], expected[1])]
    Choice { expected: [u64; 2], found: u64 },
    /// Two fields that must agree differ.
    #[error("does not agree with {0}")]
    Disagrees(&'static str),
    /// The JSON field is absent or null.
    #[error("missing")]
    Missing,
    /// The JSON field is neither a number nor a decimal or 0x-hex string.
    #[error("not a decimal or 0x-hex number")]
    NotANumber,
    /// The JSON field is not a string of 0x and an even number of hex digits.
    #[error("not 0x-hex data")]
    NotHex,
    /// The JSON field is an array of more elements than a block can have.
    #[error("more than {0} elements")]
    TooMany(usize),
    #[error("not an array")]
    NotAnArray,
}
