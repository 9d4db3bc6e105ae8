//! Reads packed recordings.

use std::fs;
use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::Value;

use crate::vectors::folder;

/// The unpacked content of a file; `None` where the recordings are absent.
pub(crate) fn bytes(name: &str) -> Option<Vec<u8>> {
    let packed = fs::read(folder()?.join(name)).expect("a recording");
    let mut content = Vec::new();
    GzDecoder::new(&packed[..]).read_to_end(&mut content).expect("gzip");
    Some(content)
}

/// The lines of a file, each a JSON value; `None` where the recordings are absent.
pub(crate) fn lines(name: &str) -> Option<Vec<Value>> {
    let text = String::from_utf8(bytes(name)?).expect("text");
    Some(text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect())
}

/// The bytes of a hex field.
pub(crate) fn hex_field(value: &Value, name: &str) -> Vec<u8> {
    hex::decode(value[name].as_str().expect("a text")).expect("hex")
}
