//! The two promise loops: following the chain, and answering one request.

use std::cell::RefCell;

use rootlight::light::{Identity, SyncFault, SyncStep};
use rootlight::rpc::{Client, Reply, Step};

use crate::config::Config;
use crate::host::{now, Deadline, Upstream};

/// A light client and its upstream. No borrow of the client is held while waiting.
#[derive(Debug)]
pub(crate) struct Driver {
    client: RefCell<Client>,
    upstream: Upstream,
}

impl Driver {
    /// A client that has not asked anything yet.
    pub(crate) fn new(config: &Config, upstream: Upstream) -> Self {
        let version = concat!("Rootlight/", env!("CARGO_PKG_VERSION"), "/wasm/Rust/light");
        let identity =
            Identity { version: version.into(), upstreams: vec!["upstream".into()], ..Identity::default() };
        let mut client = Client::new(config.network.clone(), config.checkpoint, identity);
        client.set_batch(config.batch);
        Self { client: RefCell::new(client), upstream }
    }

    /// Verifies headers until the head is reached or something does not verify.
    pub(crate) async fn follow(&self) -> Result<(), SyncFault> {
        loop {
            let step = self.client.borrow().sync_step();
            match step {
                SyncStep::Fetch(calls) => {
                    let answers = self.upstream.ask(&calls).await;
                    self.client.borrow_mut().sync_feed(answers, now());
                }
                SyncStep::Idle => return Ok(()),
                SyncStep::Failed(fault) => return Err(fault),
            }
        }
    }

    /// Looks for new blocks, from the last verified header on.
    pub(crate) async fn poll(&self) -> Result<(), SyncFault> {
        self.client.borrow_mut().sync_poll();
        self.follow().await
    }

    /// Answers one message.
    pub(crate) async fn answer(&self, message: &[u8]) -> Option<Reply> {
        let mut session = self.client.borrow().open(message);
        loop {
            let deadline = Deadline::start();
            let step = self.client.borrow().step(&mut session, &|| deadline.is_over());
            match step {
                Step::Fetch(calls) => {
                    let answers = self.upstream.ask(&calls).await;
                    self.client.borrow().feed(&mut session, answers);
                }
                Step::Done(reply) => {
                    self.client.borrow_mut().close(session);
                    return reply;
                }
            }
        }
    }
}
