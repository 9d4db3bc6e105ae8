//! The environments of the blocks of a simulation: numbers, timestamps and overrides, before any call runs.

use alloc::vec::Vec;

use super::input::{MAX_BLOCKS, SimulationInput};
use crate::{engine::BlockHeader, exec::BlockEnvironment, rpc::simulation_error::SimulationError};

/// The environment of one block of a simulation.
pub(super) struct BlockPlan {
    pub(super) environment: BlockEnvironment,
    /// The position of the block in the input; `None` for a block that fills a gap between given numbers.
    pub(super) input: Option<usize>,
}

/// The environments of all blocks, in order.
///
/// # Errors
/// Numbers or times that do not increase; too many blocks.
pub(super) fn plan(input: &SimulationInput, base: &BlockHeader) -> Result<Vec<BlockPlan>, SimulationError> {
    let mut plans = Vec::new();
    // Each block is one second after its parent, whatever the clock of a development chain says, so that every chain gives the
    // same answer.
    let mut next = BlockEnvironment::from(base.header());
    next.timestamp = next.timestamp.saturating_add(1);
    // Number and timestamp of the block before.
    let (mut number, mut time) = (base.number, base.timestamp);
    for (index, block) in input.blocks.iter().enumerate() {
        let given = block.block.number.unwrap_or(number.saturating_add(1));
        if given <= number {
            return Err(SimulationError::BlockNumber { given, parent: number });
        }
        if given.saturating_sub(base.number) > MAX_BLOCKS {
            return Err(SimulationError::TooManyBlocks(MAX_BLOCKS));
        }
        for number in number.saturating_add(1)..given {
            next.number = number;
            plans.push(BlockPlan { environment: next.clone(), input: None });
            (time, next.timestamp) = (next.timestamp, next.timestamp.saturating_add(1));
        }
        next.number = given;
        // The values stay for the blocks after this one, also for those that fill gaps, until they are overridden again.
        block.block.apply(&mut next);
        if next.timestamp <= time {
            return Err(SimulationError::Timestamp { given: next.timestamp, parent: time });
        }
        plans.push(BlockPlan { environment: next.clone(), input: Some(index) });
        (number, time) = (given, next.timestamp);
        next.timestamp = time.saturating_add(1);
    }
    Ok(plans)
}
