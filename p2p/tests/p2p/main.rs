//! The recorded handshakes, datagrams, sessions and hostile cases of a live node.

mod frames;
mod gzipped;
mod handshake;
mod messages;
mod session;
mod vectors;
