//! Peers that the operator did not name: they are discovered over UDP, stored, chosen for a slot, and replaced when they are of no
//! use.
//!
//! | file | contents |
//! |---|---|
//! | `finder`, `boot`, `state_servers` | discovery over a socket; addresses of boot hosts and of state servers |
//! | `list`, `known`, `node_file` | the list of nodes that answered, the record of each, and the file of the list |
//! | `choose` | which node is dialled next |
//! | `slots`, `slot_context` | a fixed number of upstreams, each of which uses one node after another; their settings |
//! | `crawl` | dials every node that is found once |

mod boot;
mod choose;
mod crawl;
mod finder;
mod known;
mod list;
mod node_file;
mod slot_context;
mod slots;
mod state_servers;

pub use boot::{BootHost, BootHostError, LookupError, addresses_of};
pub use crawl::{CrawlOptions, NodeVisit, SnapOffer, VisitReport, crawl, visit};
pub use finder::{Finder, FinderOptions};
pub use known::{KnownNode, Misbehaviour};
pub use list::NodeList;
pub use node_file::{FILE, read_node_file};
pub use slot_context::SlotOptions;
pub use slots::{PeerSlot, start_slots};
