//! Reads the members of lists and objects in untrusted JSON one by one, as raw text.
//!
//! A member of two bytes, `0,`, takes 16 bytes and more once it is an element of a list. A reader therefore keeps only
//! as many members as it needs.
//!
//! serde_json reads and checks each member and each name; what stands between them is read here. serde's own way into a list or
//! an object takes five kilobytes more of a browser module, most of it for the words of errors.

use serde_json::value::RawValue;
use thiserror::Error;

/// Why the members of a JSON text were not read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MembersError {
    /// The text is not JSON.
    #[error(transparent)]
    Syntax(serde_json::Error),
    /// The text is JSON, but not what it must be, which is named here.
    #[error("not {0}")]
    Other(&'static str),
    /// An object names this member twice.
    #[error("duplicate field `{0}`")]
    Duplicate(&'static str),
}

/// Passes the members of a JSON array to `take` until it returns `false`. The remaining members are skipped, but must
/// be JSON too.
///
/// # Errors
/// The text is not a JSON array.
pub fn for_each_member<'a>(
    text: &'a str,
    take: &mut dyn FnMut(&'a RawValue) -> bool,
) -> Result<(), MembersError> {
    let mut wanted = true;
    let read = for_each(text, ['[', ']'], &mut |_, member| wanted = wanted && take(member));
    read.ok_or_else(|| fault(text, "an array"))
}

/// Passes the members of a JSON object to `take`, each with its name as it is written between the quotes.
pub(super) fn for_each_named<'a>(
    text: &'a str,
    take: &mut dyn FnMut(&'a str, &'a RawValue),
) -> Result<(), MembersError> {
    for_each(text, ['{', '}'], take).ok_or_else(|| fault(text, "an object"))
}

/// Why a text is not `wanted`. serde_json finds the place of a fault by reading the whole text.
fn fault(text: &str, wanted: &'static str) -> MembersError {
    match serde_json::from_str::<&RawValue>(text) {
        Err(error) => MembersError::Syntax(error),
        Ok(_) => MembersError::Other(wanted),
    }
}

/// Passes the members between two brackets to `take`, in an object with their names. Returns `None` if the text is
/// anything else.
fn for_each<'a>(
    text: &'a str,
    [opening, closing]: [char; 2],
    take: &mut dyn FnMut(&'a str, &'a RawValue),
) -> Option<()> {
    let mut rest = Rest(text);
    rest.takes(opening).then_some(())?;
    let mut more = !rest.takes(closing);
    while more {
        let mut name = "";
        if opening == '{' {
            name = rest.value()?.get().strip_prefix('"')?.strip_suffix('"')?;
            rest.takes(':').then_some(())?;
        }
        take(name, rest.value()?);
        more = rest.takes(',');
        (more || rest.takes(closing)).then_some(())?;
    }
    rest.skip_spaces();
    rest.0.is_empty().then_some(())
}

/// What is still to be read.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn skip_spaces(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    /// Takes this character, if it is the next one after spaces.
    fn takes(&mut self, wanted: char) -> bool {
        self.skip_spaces();
        let rest = self.0.strip_prefix(wanted);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn value(&mut self) -> Option<&'a RawValue> {
        let mut values = serde_json::Deserializer::from_str(self.0).into_iter::<&RawValue>();
        let value = values.next()?.ok()?;
        self.0 = self.0.get(values.byte_offset()..)?;
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use alloc::{string::String, vec, vec::Vec};

    use super::*;

    fn first(text: &str, count: usize) -> Option<Vec<String>> {
        let mut taken = Vec::new();
        let mut take = |member: &RawValue| {
            taken.push(String::from(member.get()));
            taken.len() < count
        };
        for_each_member(text, &mut take).ok().map(|()| taken)
    }

    #[test]
    fn members_are_passed_up_to_the_limit_and_all_are_checked() {
        assert_eq!(
            first(" [1, \"a\" ,[{}],null] ", 9),
            Some(vec!["1".into(), "\"a\"".into(), "[{}]".into(), "null".into()])
        );
        assert_eq!(first("[1,2,3]", 2), Some(vec!["1".into(), "2".into()]));
        assert_eq!(first("[]", 1), Some(vec![]));
        for text in ["", "{}", "5", "[1,2,}]", "[1,2", "[1] 2", "[1,2,]"] {
            assert_eq!(first(text, 1), None, "{text}");
        }
    }
}
