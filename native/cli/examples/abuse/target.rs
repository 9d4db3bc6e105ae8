//! The server under attack.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

/// A running server, which ends when dropped.
pub(crate) struct TargetServer {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl TargetServer {
    /// Starts the program with these arguments, separated by spaces, on a free port.
    pub(crate) fn start(binary: &str, arguments: &str) -> Self {
        let mut child = Command::new(binary)
            .args(arguments.split(' '))
            .args(["--http-port", "0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let output = child.stdout.take().expect("its output");
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Some(rest) = line.strip_prefix("listening http://") {
                let address = rest.split(' ').next().and_then(|text| text.parse().ok()).expect("an address");
                return Self { child, address };
            }
        }
        let _ = child.kill();
        let _ = child.wait();
        panic!("{binary} {arguments} does not listen");
    }

    /// Resets the peak of resident memory to its present value (Linux, proc_pid_clear_refs(5)).
    pub(crate) fn reset_peak(&self) {
        let _ = std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5");
    }

    /// Returns the peak of resident memory in MiB.
    pub(crate) fn peak(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib: u64 = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0);
        kib / 1024
    }
}

impl Drop for TargetServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
