//! The methods of the server: those of the core (`src/rpc`), and those about the server itself.
//!
//! | file | contents |
//! |---|---|
//! | `rows` | the table of all methods |
//! | `profile` | the methods of a node and those of a public service |
//! | `scoring` | methods about bans and upstreams (`sco_*`) |

mod profile;
mod rows;
mod scoring;

pub use profile::{Profile, is_hosted};
pub use rows::{dispatcher, methods};
