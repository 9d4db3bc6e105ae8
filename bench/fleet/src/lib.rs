//! A discrete-event simulation of one service on many machines: front ends, a store in shards, a database and backends as
//! stations with queues. docs/benchmarks.md has its results.

pub mod costs;
pub mod fleet;
pub mod random;
pub mod report;
pub mod simulation;
