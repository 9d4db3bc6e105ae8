//! Tries each step of reading a chain, from the names of boot hosts to a proof of state, and says which ones work.
//!
//! | file | contents |
//! |---|---|
//! | `plan`, `examine` | what is tried; the order of the steps, and who is asked |
//! | `nodes` | boot hosts, discovery, handshakes |
//! | `chain` | headers, head and state, by a light client of peers or of one JSON-RPC upstream |
//! | `report` | the steps and the report |
//! | `command` | `rootlight doctor` |

mod chain;
pub(crate) mod command;
mod examine;
mod nodes;
mod plan;
mod report;

pub use examine::{DoctorError, examine};
pub use plan::DoctorPlan;
pub use report::{DialledNode, DoctorReport, DoctorStep, StepOutcome, StepSubject};
