//! Two indexers by mistake.

use super::Striker;
use crate::programs::Program;

impl Striker<'_> {
    /// A second indexer ends with an error that names the first. One that waits takes over when the first is killed.
    pub(super) async fn start_two_indexers(&mut self) {
        let first = format!("process {}", self.world.indexer.id());
        let mut second = Program::start(self.world.index_command(), &self.world.log("second-indexer"));
        let status = second.ended().await;
        let said = second.said();
        assert!(status.code() == Some(1) && said.contains(&first), "{status}: {said}");
        let mut command = self.world.index_command();
        command.arg("--wait");
        let waiting = Program::start(command, &self.world.log("indexer"));
        self.last().await;
        self.world.indexer.kill();
        self.world.indexer = waiting;
    }
}
