//! How the rows of node methods are written.

use crate::{
    engine::Level,
    rpc::method::{Handler, Method, PageAccess, Param, Read, doc_text},
};

/// The row of a method that only reads.
pub(super) const fn read(
    name: &'static str,
    params: &'static [Param],
    (result, doc): (&'static str, &'static str),
    (level, cost): (Level, u32),
    handler: Read,
) -> Method {
    let (result, doc, handler) = (doc_text(result), doc_text(doc), Handler::Read(handler));
    Method { name, aliases: &[], params, result, level, cost, pages: PageAccess::Any, doc, handler }
}
