//! The core of Rootlight: a light client, a development chain and a verifier for [Rootstock](https://rootstock.io).
//!
//! The core has no I/O, no clock and no threads. A host passes bytes, the time and randomness in, and gets proven facts,
//! JSON-RPC answers and the requests to send next. The program `rootlight` (crate `rootlight-cli`) is such a host, and
//! so is the npm package.
//!
//! # A development chain inside a test
//!
//! ```
//! # #[cfg(feature = "dev")] {
//! use rootlight::dev::{DevAccounts, DevConfig};
//! use rootlight::engine::{DevNode, HostInput};
//! use rootlight::rpc::LocalClient;
//!
//! // Seconds since 1970, and 32 bytes that a real host takes from its source of randomness for every message.
//! let host_input = HostInput { now: 1_900_000_000, entropy: Default::default() };
//! let config = DevConfig::new(&DevAccounts::default());
//! let node = DevNode::new(config, host_input).expect("the configuration is valid");
//! let mut client = LocalClient::new(Box::new(node));
//!
//! let message = client.open(br#"{"jsonrpc":"2.0","id":1,"method":"evm_mine","params":[]}"#);
//! client.answer(message, host_input, &|| false);
//! let message = client.open(br#"{"jsonrpc":"2.0","id":2,"method":"eth_blockNumber","params":[]}"#);
//! let answer = client.answer(message, host_input, &|| false).into_text().expect("a request has an answer");
//! assert_eq!(answer, r#"{"jsonrpc":"2.0","id":2,"result":"0x1"}"#);
//! # }
//! ```
//!
//! # A light client over a transport of your own
//!
//! `rpc::Client` lists the JSON-RPC requests to send to an upstream, and checks the responses. The client starts from a block
//! that you trust:
//!
//! ```
//! # #[cfg(feature = "light")] {
//! use std::sync::Arc;
//!
//! use rootlight::consensus::{Network, checkpoint};
//! use rootlight::light::{Now, SyncStep};
//! use rootlight::rpc::Client;
//!
//! let now = 1_795_000_000;
//! let network = Arc::new(Network::mainnet());
//! let start = checkpoint::newest(&network, now).expect("younger than a year").expect("mainnet has one");
//! let client = Client::new(network, start, Default::default());
//!
//! match client.sync_next(0, Now { unix: now, millis: 0 }) {
//!     // Send these to the upstream, and pass the responses to `sync_feed` in the same order.
//!     SyncStep::Fetch(requests) => assert!(!requests.is_empty()),
//!     SyncStep::Wait(millis) => println!("nothing to do for {millis} ms"),
//! }
//! # }
//! ```
//!
//! The folder `examples` has complete programs: `light_client` drives this loop to an answered request, `dev_chain`
//! deploys a contract, `verify_header` checks one header alone, and `record_and_replay` repeats a session without a
//! network.
//!
//! # Verifying data at hand
//!
//! [`verify`](mod@verify) reports what a header, block, receipt or `eth_getProof` result proves by itself.
//!
//! ```
//! use rootlight::verify::verify_account;
//!
//! let report = verify_account(br#"{"address":"0x0000000000000000000000000000000000000001"}"#, None);
//! assert!(!report.verified(), "nothing is proven without trie nodes");
//! println!("{report}");
//! ```
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `light` | the light client, with the requests that it sends and the checks of their responses |
//! | `local` | chains that are executed here: the follower of a regtest node, traces, and what other light clients are served |
//! | `dev` | the development chain, with its pool, keys and miner; implies `local` |
//! | `catalogue` | descriptions of all JSON-RPC methods, and `rpc.discover` and others that browsers do not need |
//! | `secp256k1-c` | recovery of senders by a C library, about five times as fast; needs a C compiler |
//! | `asm-keccak` | Keccak-256 in assembly; not for browsers |
//! | `testkit` | chains that are mined for tests of crates above; implies `light` |
//!
//! All but the last three are on by default. With `light` alone the crate is a light client for targets without an operating
//! system. Without any feature it has the layers up to `exec`, which verify data at hand and run calls on proven state.
//!
//! # Layers
//!
//! Each layer uses only those after it: `rpc -> engine -> dev -> local -> light -> exec -> evm -> verify -> state ->
//! consensus -> trie -> types`.
#![cfg_attr(not(test), no_std)]
// docs.rs shows the feature that an item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]
// Bytes from outside must never panic: nothing here may unwrap, index or overflow unchecked.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::arithmetic_side_effects,
        clippy::todo,
        clippy::unimplemented
    )
)]

extern crate alloc;

pub mod consensus;
#[cfg(feature = "dev")]
pub mod dev;
#[cfg(any(feature = "light", feature = "local"))]
pub mod engine;
pub mod evm;
pub mod exec;
#[cfg(feature = "light")]
pub mod light;
#[cfg(feature = "local")]
pub mod local;
#[cfg(any(feature = "light", feature = "local"))]
pub mod rpc;
pub mod state;
pub mod trie;
pub mod types;
pub mod verify;
