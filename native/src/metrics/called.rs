//! Finds the method that a message calls, without parsing the message.

/// Number of bytes at the beginning of a message in which the method is looked for. Client libraries write the method
/// before the parameters.
const SEARCHED: usize = 1024;

/// What a message calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Called<'a> {
    /// A method of this name, which may not exist.
    Method(&'a [u8]),
    /// Several methods.
    Batch,
    /// The name is not within the first [`SEARCHED`] bytes.
    Unknown,
}

/// The method of a message. Only the member `method` of the outermost object counts; its escapes are not decoded, so
/// that a name with escapes is the name of no method.
pub(super) fn called(message: &[u8]) -> Called<'_> {
    let mut rest = message.get(..SEARCHED).unwrap_or(message).trim_ascii_start();
    match rest.split_first() {
        Some((b'[', _)) => return Called::Batch,
        Some((b'{', inner)) => rest = inner,
        _ => return Called::Unknown,
    }
    let (mut depth, mut is_key, mut is_method) = (1_usize, true, false);
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'"' => {
                let Some(end) = end_of_string(after) else { return Called::Unknown };
                let (text, behind) = after.split_at(end);
                rest = behind.get(1..).unwrap_or_default();
                match (depth, is_key) {
                    (1, true) => is_method = text == b"method",
                    (1, false) if is_method => return Called::Method(text),
                    _ => {}
                }
            }
            b'{' | b'[' => depth = depth.saturating_add(1),
            b'}' | b']' if depth == 1 => return Called::Unknown,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b':' if depth == 1 => is_key = false,
            b',' if depth == 1 => is_key = true,
            _ => {}
        }
    }
    Called::Unknown
}

/// The place of the quotation mark that ends a string.
fn end_of_string(text: &[u8]) -> Option<usize> {
    let mut escaped = false;
    text.iter().position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        #[test]
        fn the_method_is_found_behind_any_id(id in ".{0,40}", key in ".{0,10}", method in "[a-zA-Z_]{0,20}") {
            let message = json!({"id": {key: id}, "method": method, "params": [id]}).to_string();
            prop_assert_eq!(called(message.as_bytes()), Called::Method(method.as_bytes()), "{}", message);
        }

        #[test]
        fn no_bytes_cause_a_panic(bytes: Vec<u8>) {
            called(&bytes);
        }
    }

    #[test]
    fn the_method_is_the_member_of_the_outermost_object() {
        for (message, method) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[]}"#, "eth_call"),
            (r#" { "method" : "eth_call" }"#, "eth_call"),
            (r#"{"params":[{"method":"no"},"method"],"id":"a\"b:","method":"yes"}"#, "yes"),
            (r#"{"id":"method","method":"yes"}"#, "yes"),
            (r#"{"id":"\\","method":""}"#, ""),
        ] {
            assert_eq!(called(message.as_bytes()), Called::Method(method.as_bytes()), "{message}");
        }
    }

    #[test]
    fn messages_without_a_method_have_none() {
        for message in [
            "",
            "{",
            "{}",
            "1",
            "\"method\"",
            r#"{"method"#,
            r#"{"method":"#,
            r#"{"method":1}"#,
            r#"{"method":"open"#,
            r#"{"m\u0065thod":"eth_call"}"#,
            r#"{"params":["method","eth_call"]}"#,
            r#"{}{"method":"eth_call"}"#,
        ] {
            assert_eq!(called(message.as_bytes()), Called::Unknown, "{message}");
        }
        let late = format!(r#"{{"id":"{}","method":"eth_call"}}"#, "x".repeat(SEARCHED));
        assert_eq!(called(late.as_bytes()), Called::Unknown);
        assert_eq!(called(b" [{}"), Called::Batch);
    }
}
