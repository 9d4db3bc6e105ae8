//! Faults of the store.

use super::Striker;
use crate::servers::wait_until;

impl Striker<'_> {
    fn any_master(&mut self) -> usize {
        let masters = self.service.servers.masters();
        masters[self.random.usize(..masters.len())]
    }

    /// Restarts a master, which comes back empty before a replica takes over.
    pub(super) async fn restart_node(&mut self) {
        let master = self.any_master();
        let servers = self.service.servers.clone();
        let restart = move || {
            servers.kill(master);
            servers.run(master);
        };
        tokio::task::spawn_blocking(restart).await.unwrap();
    }

    pub(super) async fn fail_over(&mut self) {
        let master = self.any_master();
        let servers = &self.service.servers;
        servers.kill(master);
        wait_until("a replica takes over", || async { servers.masters().len() == 3 }).await;
        self.last().await;
        let servers = self.service.servers.clone();
        tokio::task::spawn_blocking(move || servers.run(master)).await.unwrap();
    }

    pub(super) async fn flush_store(&mut self) {
        for master in self.service.servers.masters() {
            assert_eq!(self.service.servers.ask(master, "FLUSHALL"), "OK");
        }
    }

    /// No server answers. They go on at once, so that none counts another as failed for long.
    pub(super) async fn stall_store(&mut self) {
        let servers = self.service.servers.clone();
        let signal = |name: &str| (0..servers.len()).for_each(|index| servers.signal(index, name));
        signal("STOP");
        self.last().await;
        signal("CONT");
    }
}
