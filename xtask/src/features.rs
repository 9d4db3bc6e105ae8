//! The sets of features of the core that are used, and the check of its documentation with each set.

use crate::shell::{Cmd, StepOutput};
use crate::steps::StepResult;

/// The feature sets of the core, in the form that cargo takes: no default features, those of the npm
/// package's modules, the defaults, and all features of the native program.
pub(crate) const SETS: [&str; 5] = ["", "light", "dev,light", "default", "default,secp256k1-c,asm-keccak"];

/// Feature sets that are linted alone: none, which is the browser's verification module, each feature that adds code, and
/// those of the browser's development chain. Code that a set never calls is a warning there.
pub(crate) const ALONE: [&str; 6] = ["", "dev", "dev,light", "light", "local", "testkit"];

/// Documents the core with each set and runs the examples of the documentation. Warnings, such as a link to an item that
/// the set does not have, are errors.
pub(crate) fn documentation(log: &mut StepOutput) -> StepResult {
    for set in SETS {
        let with = |line: &str| {
            let cmd = Cmd::new(line).args(&["--locked", "--package", "rootlight", "--no-default-features"]);
            cmd.args(&["--features", set]).env("RUSTDOCFLAGS", "-D warnings")
        };
        log.run(with("cargo doc --no-deps"))?;
        log.run(with("cargo test --doc"))?;
    }
    Ok(format!("{} feature sets", SETS.len()))
}
