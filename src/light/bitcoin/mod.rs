//! Evidence from Bitcoin about a Rootstock chain: when its work was done, and whether Bitcoin's miners support it.
//!
//! Rootstock is merge-mined: its proof of work is a Bitcoin header whose coinbase (first transaction) names a Rootstock block in a
//! tag. docs/trust/bitcoin.md explains the rules.
//!
//! | file | contents |
//! |---|---|
//! | `dated` | work dated by the Bitcoin block that each header names as its parent, as a share of Bitcoin's own work |
//! | `commitments` | blocks of the Bitcoin chain that commit to shown headers or to their proven uncles |
//! | `coinbases` | proven coinbases of the newest Bitcoin blocks |
//! | `shown`, `tags`, `hidden` | whose chain the tags of these coinbases name, and branches that no upstream shows |
//! | `seen_blocks` | Bitcoin's newest blocks as the client saw them, and how deep they were reorganised |
//! | `judge`, `verdict` | the verdict on the chain, from all rules together |
//! | `evidence` | the Bitcoin blocks that commit to one block or to those above it, and the cost of a forgery |
//! | `served` | the encoding in which Rootlights send each other headers and coinbases |
//! | `coinbase_list`, `stored_coinbases` | the encoding of coinbases when they are sent, and when a client stores them |
//! | `follower` | the Bitcoin chain of a client, and the newest report on the Rootstock chain |
//!
//! Every function is pure: the caller gives the chains and the time.

mod coinbase_list;
mod coinbases;
mod commitments;
mod dated;
mod evidence;
mod follower;
mod hidden;
mod judge;
mod seen_blocks;
mod served;
mod served_error;
mod shown;
mod stored_coinbases;
mod tags;
mod verdict;

pub use coinbases::{Coinbases, KEPT_COINBASES, MAX_SERVED_COINBASE};
pub use commitments::{COUNTED_BLOCKS, Commitments, Counts, LEAST_COUNTED, LEAST_RECENT, RECENT_BLOCKS};
pub use dated::{
    DatedHeader, DatedReport, DatedSuffix, DatedWork, FLOORS, Floor, MAX_DATED_HEADERS, MAX_LAG, MAX_SUFFIX,
    MIN_SUFFIX,
};
pub use evidence::{AttackCost, BlockEvidence};
pub use follower::BitcoinFollower;
pub use hidden::HiddenBranch;
pub use judge::{BitcoinJudge, BitcoinReport};
pub use served::{
    MAX_SERVED_COINBASES, MAX_SERVED_HEADERS, ServedHeaders, decode_bitcoin_headers, decode_coinbases,
    encode_bitcoin_headers, encode_coinbase_proofs, encode_coinbases, encode_packed_headers,
};
pub use served_error::ServedBitcoinError;
pub use shown::{ShownChain, ShownView};
pub use tags::{
    BranchRange, JUDGED_TAGS, LEAST_OWN, MAX_AHEAD, MOST_KIN, TagClass, TagCounts, TagFault, TagReport,
    accept_all, classify, count_classes, judge_tags,
};
pub use verdict::{BitcoinVerdict, CLOSE_RIVAL, DEEP_REORGANISATION, MAX_TIP_AGE, WeakReason};

#[cfg(test)]
mod dated_test;
#[cfg(test)]
mod judge_test;
#[cfg(test)]
mod real_test;
#[cfg(test)]
mod served_test;
#[cfg(test)]
mod tags_test;
#[cfg(test)]
mod testing;
