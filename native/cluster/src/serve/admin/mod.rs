//! The admin page of a front end, on a loopback port of its own: keys, usage, most used methods, and the health of the chain,
//! the backends, the store and the database.
//!
//! A client with the token may do what `rootlight keys` does. A request is answered if it comes to a name of this machine
//! (`Host`), from the page itself (`Origin`), with the token in its `Authorization` header; wrong tokens are limited.
//! The page's files contain no data of the service and need no token.

mod api;
mod files;
mod guard;
mod listen;
mod overview;
mod reply;
mod state;
mod token;
mod token_check;

pub use listen::AdminPage;
pub use state::AdminParts;
pub use token::{AdminToken, TokenError};
