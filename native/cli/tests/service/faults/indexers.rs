//! Two indexers by mistake.

use super::Striker;
use crate::programs::Program;

impl Striker<'_> {
    /// A second indexer ends with an error that names the first. One that waits takes over when the first is killed.
    pub(super) async fn start_two_indexers(&mut self) {
        let first = format!("process {}", self.service.indexer.id());
        let mut second = Program::start(self.service.index_command(), &self.service.log("second-indexer"));
        let status = second.ended().await;
        let said = second.said();
        assert!(status.code() == Some(1) && said.contains(&first), "{status}: {said}");
        let mut command = self.service.index_command();
        command.arg("--wait");
        let waiting = Program::start(command, &self.service.log("indexer"));
        self.last().await;
        self.service.indexer.kill();
        self.service.indexer = waiting;
    }
}
