#!/bin/sh
# rustdoc with its unstable options allowed, for the JSON that `cargo xtask api` reads. The variable is set for rustdoc
# alone: build scripts of dependencies look at it, and all of them would be compiled again.
RUSTC_BOOTSTRAP=1 exec rustdoc "$@"
