//! Text of JSON objects, written member by member, for long results such as traces. Bytes and numbers need no escapes, so their text is
//! not searched for characters to escape.

use alloc::{boxed::Box, string::String, vec::Vec};

use alloy_primitives::hex;
use serde::{Serialize, ser::Error as _};
use serde_json::value::RawValue;

use super::write_hex::Quantity;

/// Objects and lists of objects that are being written. The names of members have no characters that need escapes.
#[derive(Debug, Default)]
pub(crate) struct ObjectText(Vec<u8>);

impl ObjectText {
    /// An empty text, with space for this number of bytes.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// Begins an object, whose first member is a text without characters that need escapes.
    pub(crate) fn begin(&mut self, name: &str, word: &str) {
        self.write(&["{\"", name, "\":\"", word, "\""]);
    }

    /// Ends the object.
    pub(crate) fn end(&mut self) {
        self.0.push(b'}');
    }

    /// Begins a member that is a list. [`Self::begin`] then begins its first object.
    pub(crate) fn list(&mut self, name: &str) {
        self.name(name);
        self.0.push(b'[');
    }

    /// Separates an object of a list from the one before.
    pub(crate) fn next_item(&mut self) {
        self.0.push(b',');
    }

    /// Ends the list.
    pub(crate) fn end_list(&mut self) {
        self.0.push(b']');
    }

    fn write(&mut self, parts: &[&str]) {
        parts.iter().for_each(|part| self.0.extend_from_slice(part.as_bytes()));
    }

    /// Writes the name of a member that is not the first.
    fn name(&mut self, name: &str) {
        self.write(&[",\"", name, "\":"]);
    }

    /// A member that is bytes.
    pub(crate) fn hex(&mut self, name: &str, bytes: &[u8]) {
        self.write(&[",\"", name, "\":\"0x"]);
        let start = self.0.len();
        self.0.resize(start.saturating_add(bytes.len().saturating_mul(2)), b'0');
        let digits = self.0.get_mut(start..).unwrap_or_default();
        let fits = hex::encode_to_slice(bytes, digits).is_ok();
        debug_assert!(fits, "two digits a byte");
        self.0.push(b'"');
    }

    /// A member that is a number.
    pub(crate) fn quantity(&mut self, name: &str, number: Quantity) {
        number.with_text(|text| self.write(&[",\"", name, "\":\"", text, "\""]));
    }

    /// A member of any kind.
    pub(crate) fn member<T: Serialize>(&mut self, name: &str, value: &T) -> serde_json::Result<()> {
        self.name(name);
        self.write(&[&serde_json::to_string(value)?]);
        Ok(())
    }

    /// Adds all members of an object, which must have at least one.
    pub(crate) fn members<T: Serialize>(&mut self, object: &T) -> serde_json::Result<()> {
        let text = serde_json::to_string(object)?;
        let members = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        self.write(&[",", members.unwrap_or_default()]);
        Ok(())
    }

    /// The text as JSON.
    pub(crate) fn into_raw(self) -> serde_json::Result<Box<RawValue>> {
        RawValue::from_string(String::from_utf8(self.0).map_err(serde_json::Error::custom)?)
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::U256;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn members_are_those_of_the_serialized_values() {
        let bytes: alloc::vec::Vec<u8> = (0..77).collect();
        let mut text = ObjectText::with_capacity(0);
        text.begin("type", "CALL");
        text.hex("data", &bytes);
        text.hex("none", &[]);
        text.quantity("zero", Quantity::default());
        text.quantity("most", Quantity(U256::MAX));
        text.list("inner");
        text.begin("a", "b");
        text.end();
        text.next_item();
        text.begin("c", "d");
        text.end();
        text.end_list();
        text.member("reason", &"\"quoted\"\n").unwrap();
        text.members(&json!({ "x": {}, "y": [{}] })).unwrap();
        text.end();
        let read: Value = serde_json::from_str(text.into_raw().unwrap().get()).unwrap();
        let expected = json!({
            "type": "CALL", "data": hex::encode_prefixed(&bytes), "none": "0x", "zero": "0x0",
            "most": alloc::format!("0x{}", "f".repeat(64)),
            "inner": [{ "a": "b" }, { "c": "d" }], "reason": "\"quoted\"\n", "x": {}, "y": [{}],
        });
        assert_eq!(read, expected);
    }
}
