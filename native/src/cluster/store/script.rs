//! Scripts that the store runs.

/// A script in Lua that works on one key, `KEYS[1]`. It is sent whole only to a server that does not know it.
#[derive(Debug, Clone)]
pub struct Script {
    pub(super) text: &'static str,
    pub(super) hash: String,
}

impl Script {
    /// A script. It must name no other key than `KEYS[1]`, because a cluster keeps keys on different servers.
    #[must_use]
    pub fn new(text: &'static str) -> Self {
        let hash = redis::Script::new(text).get_hash().to_owned();
        Self { text, hash }
    }
}
