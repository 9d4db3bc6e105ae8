//! Reads the members of objects in untrusted JSON as raw text, by name.
//!
//! serde's derived readers are not used because their errors quote the document at any length. One function reads all objects, which
//! keeps the browser modules small.

use alloc::string::String;

use serde_json::value::RawValue;

use super::members::{MembersError, for_each_named};

/// The raw text of a member. A missing member and null are `None`.
pub(crate) type RawMember<'a> = Option<&'a RawValue>;

/// The two names under which a member is read; a member with only one name has it twice.
pub(crate) type MemberNames = [&'static str; 2];

/// Reads the members with these names into the slots at the same positions, which must be empty. Other members are skipped,
/// but must be JSON too.
///
/// # Errors
/// The text is not a JSON object, or names a member twice.
pub(crate) fn read_slots<'a>(
    text: &'a str,
    names: &[MemberNames],
    slots: &mut [RawMember<'a>],
) -> Result<(), MembersError> {
    let mut twice = None;
    for_each_named(text, &mut |written, value| {
        let decoded = if written.contains('\\') { unescaped(written) } else { None };
        let name = decoded.as_deref().unwrap_or(written);
        let index = names.iter().position(|names| names.contains(&name));
        match index.and_then(|index| Some((names.get(index)?, slots.get_mut(index)?))) {
            None => {}
            Some(([name, _], Some(_))) => twice = twice.or(Some(*name)),
            Some((_, slot)) => *slot = Some(value),
        }
    })?;
    for slot in slots {
        *slot = slot.filter(|value| value.get() != "null");
    }
    twice.map_or(Ok(()), |name| Err(MembersError::Duplicate(name)))
}

/// A name whose escapes are all of the form `\u0061`. Other escapes are for characters that no known name has.
fn unescaped(written: &str) -> Option<String> {
    let mut pieces = written.split('\\');
    let mut name = String::from(pieces.next()?);
    for piece in pieces {
        let digits = piece.strip_prefix('u')?.get(..4)?;
        name.push(char::from_u32(u32::from_str_radix(digits, 16).ok()?)?);
        name.push_str(piece.get(5..)?);
    }
    Some(name)
}

/// Defines a structure of [`RawMember`]s, with a function `from_json` that fills it from the text of an object. Each member has its
/// name in JSON, and after `or` another one that is read too.
macro_rules! slots {
    (
        $(#[$meta:meta])*
        $vis:vis struct $type:ident {
            $($(#[$doc:meta])* $member_vis:vis $member:ident: $name:literal $(or $other:literal)?,)+
        }
    ) => {
        $(#[$meta])*
        $vis struct $type<'a> {
            $($(#[$doc])* $member_vis $member: $crate::types::json::RawMember<'a>,)+
        }

        impl<'a> $type<'a> {
            /// Reads the members of an object. Other members are skipped.
            ///
            /// # Errors
            /// The text is not a JSON object, or names a member twice.
            $vis fn from_json(text: &'a str) -> Result<Self, $crate::types::json::MembersError> {
                const NAMES: &[$crate::types::json::MemberNames] = &[$(slots!(@names $name $($other)?),)+];
                let mut slots = [None; NAMES.len()];
                $crate::types::json::read_slots(text, NAMES, &mut slots)?;
                let [$($member),+] = slots;
                Ok(Self { $($member),+ })
            }
        }
    };
    (@names $name:literal) => { [$name, $name] };
    (@names $name:literal $other:literal) => { [$name, $other] };
}
pub(crate) use slots;

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use serde_json::value::RawValue;

    use super::MembersError;

    slots! {
        struct SampleObject {
            first: "first",
            second: "secondName" or "older",
        }
    }

    #[test]
    fn members_are_read_by_name_and_others_are_skipped() {
        let read = |text| {
            let SampleObject { first, second } = SampleObject::from_json(text).unwrap();
            (first.map(RawValue::get), second.map(RawValue::get))
        };
        assert_eq!(
            read(r#" {"x":[{}], "first" : 1 ,"secondName":{"first":2}} "#),
            (Some("1"), Some("{\"first\":2}"))
        );
        assert_eq!(read(r#"{"older":"a","f\u0069rst": null}"#), (None, Some("\"a\"")));
        assert_eq!(read(r#"{"\u0066irs\u0074":1,"seco\u006EdName":2}"#), (Some("1"), Some("2")));
        // Names that differ from the known ones, and surrogates, which are no character alone.
        assert_eq!(read(r#"{"fir\tst":1,"\\u0066irst":1,"\u0046irst":1,"first\ud83d":1}"#), (None, None));
        assert_eq!(read("{}"), (None, None));
    }

    #[test]
    fn repeated_members_and_other_texts_are_refused() {
        let error = |text| SampleObject::from_json(text).err();
        for (text, name) in [
            (r#"{"first":1,"first":2}"#, "first"),
            (r#"{"first":null,"first":2}"#, "first"),
            (r#"{"first":1,"f\u0069rst":2}"#, "first"),
            (r#"{"older":1,"secondName":2,"first":1,"first":2}"#, "secondName"),
        ] {
            let found = error(text).unwrap();
            assert!(matches!(found, MembersError::Duplicate(_)), "{text}: {found}");
            assert_eq!(found.to_string(), alloc::format!("duplicate field `{name}`"), "{text}");
        }
        for text in ["[1,2]", "5", "null", "\"first\""] {
            assert!(matches!(error(text), Some(MembersError::Other(_))), "{text}");
        }
        for text in ["", "{", "{\"first\"}", "{\"first\":1}2", "{\"x\":1,}", "{\"x\":01}"] {
            assert!(matches!(error(text), Some(MembersError::Syntax(_))), "{text}");
        }
    }
}
