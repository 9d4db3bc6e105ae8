//! How well answers are proven.

/// How well an answer is proven, from strong to weak. An answer has the level of its weakest part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A constant of the network or a pure computation.
    Local,
    /// Committed to by a header on the heaviest proven chain.
    Verified,
    /// An absence that upstreams report; the absence of a hash cannot be proven.
    UnprovenAbsence,
    /// A response of upstreams without a proof, where the host allows it.
    Unproven,
    /// A transaction that was checked and forwarded to upstreams. Nothing proves that they pass it on.
    Forwarded,
}

impl Level {
    /// The name of the level: as in docs/trust.md, with `-` between words. Answers weaker than [`Self::Verified`] are marked
    /// with this name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Verified => "verified",
            Self::UnprovenAbsence => "unproven-absence",
            Self::Unproven => "unproven",
            Self::Forwarded => "forwarded",
        }
    }
}
