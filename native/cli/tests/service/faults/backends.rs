//! Faults of a backend and of the chain.

use std::sync::Arc;

use super::Striker;
use crate::backend::{Mode, ServiceBackend};

/// The backend that lies and forks. Front ends leave a liar alone for ten minutes; if the other one showed a branch in that
/// time, no honest backend would be left, and theirs would be the branch that a light client has to follow.
const DISHONEST: usize = 0;

impl Striker<'_> {
    fn any_backend(&mut self) -> usize {
        self.random.usize(..2)
    }

    async fn let_be(&mut self, number: usize, mode: Mode) {
        self.service.backends[number].set(mode);
        self.last().await;
        self.service.backends[number].set(Mode::Honest);
    }

    pub(super) async fn let_backend_lie(&mut self) {
        self.let_be(DISHONEST, Mode::Lies).await;
    }

    pub(super) async fn let_backend_lag(&mut self) {
        let head = self.service.chain.head().number;
        let number = self.any_backend();
        self.let_be(number, Mode::Lags(head)).await;
    }

    pub(super) async fn let_backend_fork(&mut self) {
        let branch = Arc::new(self.service.chain.fork().await);
        // A front end that heard of the branch before the longer chain would have to follow the branch.
        self.service.up_to_date(self.key).await;
        self.let_be(DISHONEST, Mode::Forks(branch)).await;
    }

    pub(super) async fn let_backend_hang(&mut self) {
        let number = self.any_backend();
        self.let_be(number, Mode::Hangs).await;
    }

    pub(super) async fn stop_backend(&mut self) {
        let number = self.any_backend();
        let backend: &ServiceBackend = &self.service.backends[number];
        backend.go_away().await;
        self.last().await;
        backend.come_back().await;
    }

    pub(super) async fn reorganise(&mut self) {
        self.service.chain.reorganise(self.length / 3).await;
    }
}
