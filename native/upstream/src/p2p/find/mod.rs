//! Peers that the operator did not name: discovered over UDP, remembered, chosen, and replaced.
//!
//! | file | contents |
//! |---|---|
//! | `finder`, `boot`, `state_servers` | discovery over a socket; addresses of boot hosts and of state servers |
//! | `book`, `known`, `node_file` | the nodes that answered, what is known of each, and the file they are kept in |
//! | `choose` | which node is dialled next |
//! | `slots`, `slot_context` | a fixed number of upstreams that take one node after another; their settings |
//! | `crawl` | one dial to every node that is found |

mod book;
mod boot;
mod choose;
mod crawl;
mod finder;
mod known;
mod node_file;
mod slot_context;
mod slots;
mod state_servers;

pub use book::NodeBook;
pub use boot::{BootHost, BootHostError, LookupError, addresses_of};
pub use crawl::{CrawlOptions, NodeVisit, SnapOffer, VisitReport, crawl, visit};
pub use finder::{Finder, FinderOptions};
pub use known::{KnownNode, Misbehaviour};
pub use node_file::{FILE, read_node_file};
pub use slot_context::SlotOptions;
pub use slots::{PeerSlot, start_slots};
