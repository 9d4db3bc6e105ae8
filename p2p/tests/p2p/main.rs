//! The recorded handshakes, datagrams, sessions and hostile cases of a live node.

mod frames;
mod handshake;
mod session;
mod vectors;
