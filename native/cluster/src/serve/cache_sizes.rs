//! Divides the memory of `--cache` among the caches of a front end.

/// The sizes of the caches of a front end, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheSizes {
    /// Proven blocks and state: [`LightOptions::cache_bytes`](rootlight_node::light::LightOptions::cache_bytes).
    pub facts: usize,
    /// Answers about final blocks: [`FrontEndParts::answer_cache_bytes`](super::FrontEndParts::answer_cache_bytes).
    pub answers: u64,
    /// Blocks of the index: [`IndexSource::open`](crate::IndexSource::open).
    pub index_blocks: u64,
}

impl CacheSizes {
    /// The default of `--cache`, in MiB.
    pub const DEFAULT_MIB: u64 = 48;

    /// Divides a memory of `mib` MiB: a half for facts, a third for answers, the rest for blocks of the index.
    #[must_use]
    pub fn of_mib(mib: u64) -> Self {
        let bytes = mib.saturating_mul(1 << 20);
        Self {
            facts: usize::try_from(bytes / 2).unwrap_or(usize::MAX),
            answers: bytes / 3,
            index_blocks: bytes / 6,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CacheSizes;

    #[test]
    fn the_parts_are_the_whole() {
        for mib in [1, 6, CacheSizes::DEFAULT_MIB, 1_048_576] {
            let CacheSizes { facts, answers, index_blocks } = CacheSizes::of_mib(mib);
            let all = facts as u64 + answers + index_blocks;
            assert!((mib << 20) - 2 <= all && all <= mib << 20, "{mib} MiB: {all} bytes");
        }
    }
}
