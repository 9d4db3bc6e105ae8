//! Tests of JSON-RPC methods on the development chain and on recorded chains, compared with recorded answers.

#[path = "../support/mod.rs"]
mod support;

mod anvil_recorded;
mod attempts;
mod block_overrides;
mod call_trees;
mod debug_recorded;
mod dev_clock;
mod dev_interrupts;
mod dev_limits;
mod dev_recorded;
mod dev_rpc;
mod dev_signing;
mod dev_sizes;
mod dev_tokens;
mod dev_tools;
mod dev_traces;
mod dev_unchanged;
mod estimates_recorded;
mod events;
mod execution_witness;
mod filters_recorded;
mod filters_reorg;
mod fixture;
mod follower;
mod geth_recorded;
mod logs_recorded;
mod modes;
mod node_methods;
mod objects;
mod otterscan;
mod overrides_recorded;
mod raw;
mod simulate;
mod specification;
mod storage_range;
mod submissions_recorded;
mod subscriptions_recorded;
mod traced_calls;
mod tracers;
mod tracers_recorded;
mod traces_recorded;
mod vm_traces;
mod waiting;
