//! The support of each method in each mode, which the catalogue of methods (`rpc.discover`, docs/methods.md) states.

use serde::{Serialize, Serializer, ser::SerializeMap as _};

use super::{
    error::RpcError,
    method::{Method, Runs},
    mode::Mode,
};

/// The support of a method in a mode.
#[derive(Debug, Clone, PartialEq)]
pub enum Support {
    /// The method answers.
    Works,
    /// The method answers within this limit.
    Partly(&'static str),
    /// The method answers with this error.
    Refused(RpcError),
}

/// As an object: `support` is `works`, `partly` with `limit`, or `refused` with `code` and `message`.
impl Serialize for Support {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Works => map.serialize_entry("support", "works")?,
            Self::Partly(limit) => {
                map.serialize_entry("support", "partly")?;
                map.serialize_entry("limit", limit)?;
            }
            Self::Refused(error) => {
                map.serialize_entry("support", "refused")?;
                map.serialize_entry("code", &error.code())?;
                map.serialize_entry("message", &alloc::format!("{error}"))?;
            }
        }
        map.end()
    }
}

/// The limit of a light client on methods that execute a mined block.
pub(super) const PARENT_STATE: &str = "where an upstream proves the state of the block's parent";

impl Method {
    /// The support of the method in a mode.
    pub fn support(&self, mode: Mode) -> Support {
        let limit = self.limits.iter().find(|(at, _)| *at == mode).map(|(_, text)| *text);
        let executes = mode == Mode::Light && self.runs == Runs::Block;
        match (self.refusal(mode), limit.or(executes.then_some(PARENT_STATE))) {
            (Some(error), _) => Support::Refused(error),
            (None, Some(text)) => Support::Partly(text),
            (None, None) => Support::Works,
        }
    }
}
