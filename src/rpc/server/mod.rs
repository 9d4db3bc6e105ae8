//! What only servers need: further methods, profiles, rules about parameters, and an index beside a light client. Browser
//! modules name none of it, so that their linker leaves it out.

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
mod rows;
mod scoring;
mod subjects;
mod work;

pub use index::Index;
pub use index_questions::{
    AskedBlock, BlockPart, BlockQuestion, INDEX_BLOCK, INDEX_LOGS, INDEX_RECEIPT, INDEX_TRACES,
    INDEX_TRANSACTION, LogQuestion, LogReply, TraceQuestion, TraceReply, hash_of_params, is_index_question,
};
pub use profile::Profile;
pub use rows::{dispatcher, methods};
