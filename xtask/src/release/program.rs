//! Builds the static program for each target of a release.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::shell::{Cmd, StepOutput, find, target_dir};
use crate::steps::StepResult;
use crate::{tools, wasm};

/// A platform for which the program is built.
pub(super) struct ReleaseTarget {
    /// Rust's name for the platform.
    pub(super) triple: &'static str,
    /// Rust's name for the processor.
    processor: &'static str,
    /// The containers' name for the processor.
    pub(super) container: &'static str,
    /// The C compiler, for the C and assembly code of dependencies.
    compiler: &'static str,
    /// The linker; `None` if this machine's linker can link for the target.
    linker: Option<&'static str>,
    /// Debian's packages of the compiler and the linker.
    packages: &'static [&'static str],
    /// Name of the emulator for other processors, from Debian's package `qemu-user-static`.
    emulator: &'static str,
}

/// Platforms that the program is built for. Rust includes the C library musl for both.
pub(super) const TARGETS: [ReleaseTarget; 2] = [
    ReleaseTarget {
        triple: "x86_64-unknown-linux-musl",
        processor: "x86_64",
        container: "amd64",
        compiler: "musl-gcc",
        linker: None,
        packages: &["musl-tools"],
        emulator: "qemu-x86_64-static",
    },
    ReleaseTarget {
        triple: "aarch64-unknown-linux-musl",
        processor: "aarch64",
        container: "arm64",
        compiler: "aarch64-linux-gnu-gcc",
        linker: Some("aarch64-linux-gnu-gcc"),
        packages: &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"],
        emulator: "qemu-aarch64-static",
    },
];

impl ReleaseTarget {
    /// Whether this machine's processor runs the program.
    pub(super) fn native(&self) -> bool {
        self.processor == std::env::consts::ARCH
    }

    /// The built program.
    pub(super) fn path(&self) -> PathBuf {
        target_dir().join(self.triple).join("dist/rootlight")
    }

    /// The emulator that runs the program here: `Some(None)` if none is needed, `None` if it is needed and missing.
    pub(super) fn emulator(&self) -> Option<Option<PathBuf>> {
        if self.native() { Some(None) } else { find(self.emulator).map(Some) }
    }

    /// Returns the command that runs the program, or `None` if this machine cannot run it.
    pub(super) fn command(&self) -> Option<Command> {
        Some(match self.emulator()? {
            None => Command::new(self.path()),
            Some(emulator) => {
                let mut command = Command::new(emulator);
                command.arg(self.path());
                command
            }
        })
    }
}

/// Installs Rust's target and the C compiler.
pub(super) fn tools(log: &mut StepOutput, target: &ReleaseTarget) -> StepResult {
    log.run(Cmd::new("rustup target add").arg(target.triple))?;
    let missing = if find(target.compiler).is_none() { target.packages } else { &[] };
    tools::debian_packages(log, missing)
}

/// Builds the program and puts it into the folder of the container.
pub(super) fn build(log: &mut StepOutput, target: &ReleaseTarget) -> StepResult {
    let variable = target.triple.replace('-', "_");
    let cargo = format!("CARGO_TARGET_{}", variable.to_uppercase());
    let mut build =
        Cmd::new("cargo build --profile dist --locked --package rootlight-cli --bin rootlight --target")
            .arg(target.triple)
            .args(&["--features", "js-tracers"])
            .env(&format!("{cargo}_RUSTFLAGS"), wasm::flags())
            .env("CARGO_PROFILE_DIST_STRIP", "symbols")
            .env(&format!("CC_{variable}"), target.compiler)
            // The same flags in the form of C compilers.
            .env(
                &format!("CFLAGS_{variable}"),
                wasm::flags().replace("--remap-path-prefix", "-ffile-prefix-map"),
            );
    if let Some(linker) = target.linker {
        build = build.env(&format!("{cargo}_LINKER"), linker);
    }
    log.run(build)?;
    let folder = super::files::folder().join("container").join(target.container);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let bytes = fs::copy(target.path(), folder.join("rootlight"));
    let bytes = bytes.map_err(|e| format!("{}: {e}", target.path().display()))?;
    Ok(format!("{bytes} bytes"))
}
