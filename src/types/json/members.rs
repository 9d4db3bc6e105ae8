//! Reads the members of lists and objects in untrusted JSON one by one, as raw text.
//!
//! A member of two bytes, `0,`, takes 16 bytes and more of memory as an element of a list. A caller therefore gets each member by itself,
//! and keeps only as many as it needs.
//!
//! serde_json reads and checks each member and each name; this file reads the brackets, commas and colons between them, because errors of
//! serde's own readers of lists and objects quote strings of any length.

use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;

/// Why the members of a JSON text were not read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MembersError {
    /// The text is not JSON.
    #[error(transparent)]
    Syntax(serde_json::Error),
    /// The text is JSON, but not of the kind that is named here: an array or an object.
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
    let mut goes_on = true;
    let read = for_each(text, [b'[', b']'], &mut |_, member| goes_on = goes_on && take(member));
    read.ok_or_else(|| fault(text, "an array"))
}

/// Passes the members of a JSON object to `take`, each with its name as it is written between the quotes.
pub(super) fn for_each_named<'a>(
    text: &'a str,
    take: &mut dyn FnMut(&'a str, &'a RawValue),
) -> Result<(), MembersError> {
    for_each(text, [b'{', b'}'], take).ok_or_else(|| fault(text, "an object"))
}

/// Why a text is not `wanted`. serde_json reads the whole text again, to find the line and column of a fault.
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
    [opening, closing]: [u8; 2],
    take: &mut dyn FnMut(&'a str, &'a RawValue),
) -> Option<()> {
    let mut rest = Rest(text);
    rest.takes(opening).then_some(())?;
    let mut more = !rest.takes(closing);
    while more {
        let mut name = "";
        if opening == b'{' {
            name = rest.value()?.get().strip_prefix('"')?.strip_suffix('"')?;
            rest.takes(b':').then_some(())?;
        }
        take(name, rest.value()?);
        more = rest.takes(b',');
        (more || rest.takes(closing)).then_some(())?;
    }
    rest.skip_spaces();
    rest.0.is_empty().then_some(())
}

/// The rest of the text to read.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    /// Takes the next byte if it is one of `wanted`, which must be ASCII. Returns whether it is.
    fn takes_any(&mut self, wanted: &[u8]) -> bool {
        let found = self.0.as_bytes().first().is_some_and(|byte| wanted.contains(byte));
        if found {
            self.0 = self.0.get(1..).unwrap_or_default();
        }
        found
    }

    fn skip_spaces(&mut self) {
        while self.takes_any(b" \t\n\r") {}
    }

    /// Takes the next byte that is no space, if it is `wanted`. Returns whether it is.
    fn takes(&mut self, wanted: u8) -> bool {
        self.skip_spaces();
        self.takes_any(&[wanted])
    }

    /// Takes the next JSON value.
    fn value(&mut self) -> Option<&'a RawValue> {
        self.skip_spaces();
        let value = <&RawValue>::deserialize(&mut serde_json::Deserializer::from_str(self.0)).ok()?;
        self.0 = self.0.get(value.get().len()..)?;
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use alloc::{
        collections::BTreeMap,
        format,
        string::{String, ToString},
        vec,
        vec::Vec,
    };

    use proptest::prelude::*;

    use super::*;

    /// The first members of an array, at most `count`.
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

    #[test]
    fn errors_say_what_is_wrong_and_where() {
        let words = |text| for_each_member(text, &mut |_| true).unwrap_err().to_string();
        assert_eq!(words(" {} "), "not an array");
        assert_eq!(words("[1,\n 2 3]"), "expected `,` or `]` at line 2 column 4");
        assert_eq!(words("[1,\n 2x]"), "expected `,` or `]` at line 2 column 3");
        let words = |text| for_each_named(text, &mut |_, _| ()).unwrap_err().to_string();
        assert_eq!(words("[]"), "not an object");
        assert_eq!(words(r#"{"a": 1, 2: 3}"#), "key must be a string at line 1 column 10");
    }

    /// Texts of lists and objects, about a third of them faulty.
    fn texts() -> impl Strategy<Value = String> {
        let value = r#"( ?(1|-2\.5e3|null|true|"a"|"[,\]}]\\""|\[0, \{\}\]|\{"x":\[\]\})[ \n]?)"#;
        let list = format!(r#"\[({value},){{0,3}}{value}\]"#);
        let object = format!(r#"\{{( ?"[abc]"\t?:{value},){{0,3}} ?"(a|b\\u0061)" ?:{value}\}}"#);
        let near = format!(r#"[\[{{]({value}[,:]?|"|x|\x0c|-|[\[\]{{}}]){{0,4}}[\]}}]?"#);
        let of = |pattern: String| prop::string::string_regex(&pattern).unwrap();
        let texts = prop_oneof![of(list), of(object), of(near)];
        (texts, any::<prop::sample::Index>(), 0..8).prop_map(|(mut text, at, change)| {
            if change == 0 {
                text.remove(at.index(text.len()));
            }
            text
        })
    }

    proptest! {
        /// serde finds the same members in the same texts, and refuses the same others.
        #[test]
        fn members_are_those_that_serde_finds(text in texts()) {
            let mut listed = Vec::new();
            let found = for_each_member(&text, &mut |member| {
                listed.push(member.get());
                true
            });
            match (serde_json::from_str::<Vec<&RawValue>>(&text), found) {
                (Ok(members), Ok(())) => {
                    prop_assert_eq!(listed, members.into_iter().map(RawValue::get).collect::<Vec<_>>());
                }
                (Err(error), Err(MembersError::Other(_))) => prop_assert!(error.is_data(), "{}", error),
                (Err(_), Err(MembersError::Syntax(_))) => {}
                (expected, found) => prop_assert!(false, "{:?}, but serde: {:?}", found, expected),
            }
            let mut named = BTreeMap::new();
            let found = for_each_named(&text, &mut |name, member| {
                named.insert(name.replace("\\u0061", "a"), member.get());
            });
            let expected = serde_json::from_str::<BTreeMap<String, &RawValue>>(&text);
            prop_assert_eq!(found.is_ok(), expected.is_ok());
            if let Ok(members) = expected {
                prop_assert_eq!(named, members.into_iter().map(|(name, raw)| (name, raw.get())).collect());
            }
        }
    }
}
