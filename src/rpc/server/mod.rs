//! What only servers need: further methods, profiles, rules about parameters, and what is beside a light client. Browser modules name none of it, so that
//! their linker leaves it out.

mod access_list;
mod bridge;
mod discover;
mod index;
mod index_questions;
#[cfg(test)]
mod index_test;
mod index_traces;
mod profile;
mod proof;
mod row;
mod scoring;
mod subjects;
mod work;

use alloc::sync::Arc;

pub use index::Index;
pub use index_questions::{
    AskedBlock, BlockPart, BlockQuestion, INDEX_BLOCK, INDEX_LOGS, INDEX_RECEIPT, INDEX_TRACES,
    INDEX_TRANSACTION, LogQuestion, LogReply, TraceQuestion, TraceReply, hash_of_params, is_index_question,
};
pub use profile::Profile;
use row::read;

use super::{
    dispatch::Dispatcher,
    method::{Done, Failure, Handler, Method, done},
    table,
};
use crate::engine::{Level, View};

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
const MODULES: Method =
    Method { handler: Handler::Read(|_, _| table::modules_of(methods())), ..table::MODULES };

/// The method that describes all methods.
const DISCOVER: Method = discover::row(|view, _| described(view, methods()));

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
fn described(view: &dyn View, rows: impl Iterator<Item = &'static Method>) -> Result<Done, Failure> {
    done(&discover::document(&view.client_version(), rows), Level::Local)
}
