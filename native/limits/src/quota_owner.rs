//! Whose share of a server's limits a message takes.

/// The owner of a share of budgets and permits: an address or an API key, or all web pages of other origins at an address
/// together. Pages share one quota, because one page can have many origins. The core tells pages apart by origin
/// ([`Asker`](rootlight::types::Asker)), because each origin has filters and waiting transactions of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuotaOwner {
    /// The number of the address or of the API key, as in [`Asker::number`](rootlight::types::Asker::number): the 32 bits of an
    /// IPv4 address, or the first 64 bits of an IPv6 address.
    pub number: u64,
    /// Whether the quota is that of the pages of other origins at the address, which leaves a part to the address's programs.
    pub is_page: bool,
}

/// The programs of the address with this number, or its API key.
impl From<u64> for QuotaOwner {
    fn from(number: u64) -> Self {
        Self { number, is_page: false }
    }
}
