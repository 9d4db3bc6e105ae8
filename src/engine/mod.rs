//! What answers are built from: the view of a pinned head that handlers read.
//!
//! A handler is a pure function of a [`View`]. What the view does not hold, it reports as [`Stop::Lacking`]; the host
//! fetches it, the light client proves it, and the handler runs again on more facts.

mod light_view;
mod refusal;
mod selector;
mod view;

pub use light_view::LightView;
pub use refusal::Refusal;
pub use selector::{resolve, BlockId, Resolved};
pub(crate) use view::both;
pub use view::{Depths, Level, Need, Stop, SyncProgress, TransactionPlace, View};
