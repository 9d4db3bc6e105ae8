//! Tries each step of reading a chain, from the names of boot hosts to a proof of state, and says which ones work.
//!
//! | file | contents |
//! |---|---|
//! | `plan`, `examine` | sources and limits of a check; the run of its steps |
//! | `nodes` | boot hosts, discovery, handshakes |
//! | `chain`, `waits` | headers, head and state, by a light client of peers or of one upstream; the reasons of its waits |
//! | `bitcoin`, `tags` | sources of Bitcoin's chain; the tags of this chain in Bitcoin's blocks |
//! | `report`, `replay` | the steps and the report; a report that is tried again from its recordings |
//! | `command` | `rootlight doctor` |

mod bitcoin;
mod chain;
pub(crate) mod command;
mod examine;
mod nodes;
mod plan;
mod replay;
mod report;
mod tags;
mod waits;

pub use examine::{DoctorError, examine};
pub use plan::DoctorPlan;
pub use report::{DialledNode, DoctorReport, DoctorStep, StepOutcome, StepSubject};
