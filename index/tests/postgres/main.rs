//! The index on a real PostgreSQL server.

mod common;
mod filters;
mod loading;
mod questions;
mod reorganisations;
mod schema;
mod traces;
mod writers;
