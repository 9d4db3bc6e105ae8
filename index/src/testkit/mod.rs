//! For tests: a PostgreSQL server of their own, and blocks.

mod chain;
mod server;
mod small_disk;

pub use chain::{LogsByTransaction, Maker};
pub use server::{PostgresServer, client_config, own_processor_time, postgres};
