//! Checks the dependencies with cargo-deny: their sources, their licences, and that a crate is compiled in two versions only for
//! a stated reason. The rules are in `deny.toml`.

use crate::shell::{Cmd, StepOutput};
use crate::steps::StepResult;
use crate::tools;

/// Installs cargo-deny if it is missing, and runs it.
pub(crate) fn check(log: &mut StepOutput) -> StepResult {
    tools::cargo_deny(log)?;
    let check = "cargo deny --workspace check -D warnings bans licenses sources";
    log.run(Cmd::new(check)).map(|_| String::new())
}
