//! The subjects of documents that `rootlight verify` and the package verify.

/// The subject of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentSubject {
    /// A header, or consecutive headers.
    Header,
    /// A block with its transactions.
    Block,
    /// A receipt with its trie nodes.
    Receipt,
    /// An `eth_getProof` result.
    Account,
}

impl DocumentSubject {
    /// Every subject.
    pub const ALL: [Self; 4] = [Self::Header, Self::Block, Self::Receipt, Self::Account];

    /// The name in reports and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Block => "block",
            Self::Receipt => "receipt",
            Self::Account => "account",
        }
    }

    /// The subject with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|subject| subject.name() == name)
    }
}
