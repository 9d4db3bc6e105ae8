//! Methods that only servers need. Browser modules leave them out.

mod access_list;
mod bridge;
mod discover;
mod proof;
mod scoring;
mod work;

#[cfg(feature = "hosted")]
pub(super) use discover::{DISCOVER, discover};

use super::method::{Handler, Method, Pages, Param, Read, told};
use crate::engine::Level;

/// The rows of the method table, by file.
pub(super) const METHODS: &[&[Method]] = &[
    access_list::METHODS,
    bridge::METHODS,
    discover::METHODS,
    proof::METHODS,
    scoring::METHODS,
    work::METHODS,
];

/// The row of a method that only reads.
const fn read(
    name: &'static str,
    params: &'static [Param],
    (result, doc): (&'static str, &'static str),
    (level, cost): (Level, u32),
    handler: Read,
) -> Method {
    let (result, doc, handler) = (told(result), told(doc), Handler::Read(handler));
    Method { name, aliases: &[], params, result, level, cost, pages: Pages::Any, doc, handler }
}
