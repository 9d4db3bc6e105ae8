//! Faults of front ends. The last one of them is never ended, so that its memory tells of the whole run.

use super::Striker;
use crate::running_service::FRONT_ENDS;

/// Seconds by which a clock is ahead or behind.
const SKEW: i64 = 60;

impl Striker<'_> {
    pub(super) async fn kill_front_end(&mut self) {
        let turn = self.random.usize(..FRONT_ENDS - 1);
        self.service.front_ends[turn].kill();
        self.service.balancer.killed(turn);
        self.last().await;
        self.service.start_front_end(turn, 0).await;
    }

    /// A minute ahead, a minute behind, and right.
    pub(super) async fn shift_clocks(&mut self) {
        for skew in [SKEW, 0] {
            for (turn, ahead) in [(0, skew), (1, -skew)] {
                let status = self.service.front_ends[turn].end().await;
                assert!(status.success(), "{}", self.service.front_ends[turn].said());
                self.service.start_front_end(turn, ahead).await;
            }
            self.last().await;
        }
    }
}
