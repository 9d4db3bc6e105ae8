//! `rootlight balance`: prints one balance with the evidence that proves it.
//!
//! | file | contents |
//! |---|---|
//! | `args`, `account` | flags; addresses and their checksums |
//! | `command` | the run, from the flags to the end of the program |
//! | `prove` | waits for the head, and asks for the balance until it is proven |
//! | `sources` | what each source of the run has said |
//! | `progress` | the line on stderr that shows the progress |
//! | `answer`, `text` | a proven balance; how it is printed |
//! | `failure` | what is printed where no balance is proven |

mod account;
mod answer;
mod args;
mod command;
mod failure;
mod progress;
mod prove;
pub(crate) mod sources;
mod text;

pub use args::{BalanceArgs, BlockChoice, BlockChoiceError};
pub(crate) use command::run;
