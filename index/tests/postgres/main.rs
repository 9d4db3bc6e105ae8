//! The index on a real PostgreSQL server.

mod common;
mod filters;
mod loading;
mod reorganisations;
mod schema;
mod traces;
mod writers;
