//! What Bitcoin says about a Rootstock chain: when its work was done, and whether Bitcoin's miners stand behind it.
//!
//! | file | contents |
//! |---|---|
//! | `dated` | work dated by the Bitcoin block that each header names as its parent, as a share of Bitcoin's own work |
//! | `coinbases` | proven coinbases of the newest Bitcoin blocks |
//! | `shown`, `tags`, `hidden` | whose chain the tags of these coinbases name, and branches that nobody shows |
//!
//! Every function is pure: the caller gives the chains and the time.

mod coinbases;
mod dated;
mod hidden;
mod shown;
mod tags;

pub use coinbases::{Coinbases, KEPT_COINBASES};
pub use dated::{
    DatedHeader, DatedReport, DatedSuffix, DatedWork, FLOORS, Floor, MAX_DATED_HEADERS, MAX_LAG, MAX_SUFFIX,
    MIN_SUFFIX,
};
pub use hidden::HiddenBranch;
pub use shown::{ShownChain, ShownView};
pub use tags::{
    BranchRange, JUDGED_TAGS, LEAST_OWN, MAX_AHEAD, MOST_KIN, TagClass, TagCounts, TagFault, TagReport,
    classify, judge_classes, judge_tags,
};

#[cfg(test)]
mod dated_test;
#[cfg(test)]
mod tags_test;
#[cfg(test)]
mod testing;
