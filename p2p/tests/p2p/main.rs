//! The recorded handshakes, datagrams, sessions and hostile cases of a live node.

mod check;
mod chunks;
mod datagrams;
mod discovery;
mod frames;
mod gzipped;
mod handshake;
mod headers;
mod large_trie;
mod messages;
mod random_tries;
mod responses;
mod search;
mod seek;
mod session;
mod state;
mod vectors;
