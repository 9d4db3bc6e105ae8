//! The data that answers are built from: the view of a pinned head that handlers read.
//!
//! A handler is a pure function of a [`View`]. Missing facts end the handler with [`Stop::Missing`]; the host fetches them,
//! the light client proves them, and the handler runs again.
//!
//! | files | contents |
//! |---|---|
//! | `view`: `chain`, `state`, `pool`, `policy`; `block_header`, `block_id` | the interface that handlers read |
//! | `light_view`, with `gate`, `light_fallback`, `light_replay` | the view of a light client |
//! | `local_view`, with `producer`, `dev_producer` | the view of an executed chain |
//! | `node`: `dev_node`, `follow_node` | executed chains, as handlers change them |
//! | `filters`, `logs`, `log_filter`, `log_blocks` | filters and subscriptions, and logs of ranges of blocks |
//! | `need`, `refusal`, `level` | why there is no answer, and how well an answer is proven |

mod block_header;
mod block_id;
mod chain;
#[cfg(feature = "dev")]
mod dev_node;
#[cfg(feature = "dev")]
mod dev_producer;
mod filters;
#[cfg(feature = "local")]
mod follow_node;
#[cfg(feature = "light")]
pub mod gate;
mod level;
#[cfg(all(feature = "light", feature = "local"))]
mod light_fallback;
#[cfg(all(feature = "light", feature = "local"))]
mod light_replay;
#[cfg(feature = "light")]
mod light_view;
#[cfg(feature = "local")]
mod local_view;
#[cfg(feature = "local")]
mod log_blocks;
mod log_filter;
mod logs;
#[cfg(feature = "local")]
mod node;
mod policy;
mod pool;
#[cfg(feature = "local")]
mod producer;
mod refusal;
mod state;
mod stop;
mod view;

pub use block_header::BlockHeader;
pub use block_id::{BlockId, FINALIZED_DEPTH, Resolved, SAFE_DEPTH, newest_answerable_height, resolve};
pub use chain::{BlockNumbers, Chain, TransactionLocation};
#[cfg(feature = "dev")]
pub use dev_node::DevNode;
#[cfg(feature = "light")]
pub use filters::{ExportedFilter, MAX_PENDING, MAX_REPORTED_BLOCKS, MAX_REPORTED_LOGS, ReportedBlock};
pub use filters::{
    FILTER_IDLE, FilterChanges, FilterLimit, FilterOwner, FilterSpec, Filters, MAX_FILTERS, SUBSCRIPTION_IDLE,
};
#[cfg(feature = "local")]
pub use follow_node::FollowNode;
pub use level::Level;
#[cfg(feature = "light")]
pub use light_view::LightView;
#[cfg(feature = "local")]
pub use local_view::{LocalSnapshot, LocalView};
#[cfg(feature = "local")]
pub use log_blocks::LogBlocks;
pub use log_filter::LogFilter;
pub use logs::{
    FREE_LOG_BLOCKS, FoundLog, MAX_LOG_BYTES, MAX_LOGS, RangeStop, block_logs, check_count, logs_by_hash,
    range_logs,
};
#[cfg(feature = "local")]
pub use node::{HostInput, LocalNode, NodeParts, Snapshot};
pub use policy::Policy;
pub use pool::{Miner, Pool, PoolPart, TransactionPool, WaitingTransaction};
#[cfg(feature = "local")]
pub use producer::{BlockProducer, PendingBlock};
pub use refusal::{RESOURCE_UNAVAILABLE, Refusal};
pub use state::State;
pub(crate) use stop::both;
pub use stop::{Stop, ViewResult};
pub use view::{SyncProgress, View};
