//! Reads lists in untrusted JSON member by member.
//!
//! A member of two bytes, `0,`, takes 16 bytes and more once it is an element of a list. A reader therefore keeps only
//! as many members as it needs.

use core::fmt;

use serde::{
    Deserializer,
    de::{SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// Passes the members of a JSON array to `take` until it returns `false`. The remaining members are skipped, but must
/// be JSON too.
///
/// # Errors
/// The text is not a JSON array.
pub fn for_each_member<'a>(
    text: &'a str,
    take: &mut dyn FnMut(&'a RawValue) -> bool,
) -> Result<(), serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.deserialize_seq(Members(take))?;
    reader.end()
}

struct Members<'f, 'a>(&'f mut dyn FnMut(&'a RawValue) -> bool);

impl<'de> Visitor<'de> for Members<'_, 'de> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut wanted = true;
        while let Some(member) = members.next_element()? {
            wanted = wanted && (self.0)(member);
        }
        Ok(())
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
