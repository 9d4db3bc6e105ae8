//! Items with which a host writes its own rows of the method table.
//!
//! A row is a [`Method`](super::Method) whose handler is a plain function. The host passes the rows of
//! [`methods`](super::methods) and then its own to [`Dispatcher::new`](super::Dispatcher::new), and the dispatcher to its
//! client. A row of the host takes the place of a row of the core with the same name. A handler finds the host's own data in
//! [`Policy::host`](crate::engine::Policy::host).
//!
//! ```
//! use rootlight::engine::Level;
//! use rootlight::rpc::{Dispatcher, Handler, Method, PageAccess, methods, row};
//!
//! /// What the host passes to its client, and finds in each view.
//! struct Host {
//!     region: String,
//! }
//!
//! const REGION: Method = Method {
//!     level: Level::Local,
//!     pages: PageAccess::Operator,
//!     ..Method::new("host_region", &[], "string or null", "Where this server runs.", Handler::Read(|view, _| {
//!         let host = view.policy().host.and_then(|host| host.downcast_ref::<Host>());
//!         row::done(&host.map(|host| &host.region), Level::Local)
//!     }))
//! };
//!
//! let dispatcher = Dispatcher::new(methods().chain([&REGION]));
//! assert!(dispatcher.find("host_region").is_some());
//! ```

#[cfg(feature = "catalogue")]
pub use super::discover::described;
pub use super::method::{done, required};
#[cfg(feature = "light")]
pub use super::rootlight::numbered_upstreams;
pub use super::table::modules_of;
#[cfg(feature = "local")]
pub use super::trace::hosted_filter;
