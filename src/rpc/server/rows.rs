//! The methods of servers.

use alloc::sync::Arc;

use super::{access_list, bridge, discover, proof, scoring, work};
use crate::{
    engine::{Level, View},
    rpc::{
        dispatch::Dispatcher,
        method::{Failure, Handler, HandlerOutput, Method, done},
        table,
    },
};

/// The rows of servers, by file. They take the place of rows of the same name.
static ROWS: &[&[Method]] = &[
    access_list::METHODS,
    bridge::METHODS,
    &[MODULES, DISCOVER],
    proof::METHODS,
    scoring::METHODS,
    work::METHODS,
];

/// The method that lists the namespaces.
pub(super) const MODULES: Method =
    Method { handler: Handler::Read(|_, _| table::modules_of(methods())), ..table::MODULES };

/// The method that describes all methods.
pub(super) const DISCOVER: Method = discover::row(|view, _| described(view, methods()));

/// Every method of a server, once.
pub fn methods() -> impl Iterator<Item = &'static Method> {
    let own = || ROWS.iter().flat_map(|rows| rows.iter());
    let is_kept = move |row: &&Method| own().all(|other| other.name != row.name);
    table::methods().filter(is_kept).chain(own())
}

/// A dispatcher of [`methods`].
pub fn dispatcher() -> Arc<Dispatcher> {
    Arc::new(Dispatcher::new(methods()))
}

/// The OpenRPC document of these methods.
pub(super) fn described(
    view: &dyn View,
    rows: impl Iterator<Item = &'static Method>,
) -> Result<HandlerOutput, Failure> {
    done(&discover::document(view.policy().version, rows), Level::Local)
}
