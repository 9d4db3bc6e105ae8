//! The table of the server's methods: the rows of the core, and those of the server. A row is the entry of a method in the table,
//! with its handler.

use std::sync::{Arc, LazyLock};

use rootlight::engine::View;
use rootlight::rpc::{self, Dispatcher, Handler, HandlerResult, Method, Params, Read, row};

use super::scoring;

/// The server's own rows. They replace rows of the core with the same name.
static OWN: LazyLock<Vec<Method>> =
    LazyLock::new(|| scoring::METHODS.iter().copied().chain(rpc::methods().filter_map(listing)).collect());

/// The server's row of a method that lists methods, so that the list has the methods of the server too; `None` for other methods.
fn listing(method: &'static Method) -> Option<Method> {
    let handler: Read = match method.name {
        "rpc_modules" => modules,
        "rpc.discover" => document,
        _ => return None,
    };
    Some(Method { handler: Handler::Read(handler), ..*method })
}

/// Every method of a server, once.
pub fn methods() -> impl Iterator<Item = &'static Method> {
    let is_kept = |row: &&Method| OWN.iter().all(|own| own.name != row.name);
    rpc::methods().filter(is_kept).chain(OWN.iter())
}

/// The method table by name.
#[must_use]
pub fn dispatcher() -> &'static Arc<Dispatcher> {
    // Static, because the table never changes.
    static DISPATCHER: LazyLock<Arc<Dispatcher>> = LazyLock::new(|| Arc::new(Dispatcher::new(methods())));
    &DISPATCHER
}

fn modules(_: &dyn View, _: Params<'_>) -> HandlerResult {
    row::modules_of(methods())
}

fn document(view: &dyn View, _: Params<'_>) -> HandlerResult {
    row::described(view, methods())
}
