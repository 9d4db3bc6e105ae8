//! A small file system in memory, which a test can fill.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The folder below a server's folder at which its small file system is mounted.
pub(super) fn small_folder(server: &Path) -> PathBuf {
    server.join("small")
}

/// A process whose mount namespace has the file system. The process keeps the file system while the server restarts.
#[derive(Debug)]
pub(super) struct MountHolder {
    process: Child,
    /// The folder of the server.
    folder: PathBuf,
}

impl MountHolder {
    /// Starts a process that keeps a mount namespace with a tmpfs `small` alive, which belongs to a user and group.
    pub(super) fn start(folder: &Path, mebibytes: u32, (user, group): (u32, u32)) -> Self {
        let script = format!(
            "mkdir -p small && mount -t tmpfs -o size={mebibytes}m,uid={user},gid={group},mode=700 tmpfs small && \
             echo mounted && exec cat"
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script]).current_dir(folder).process_group(0);
        // `cat` ends with its input, so that it does not outlive a test that is killed.
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("unshare runs");
        let mut line = [0; 8];
        let output = process.stdout.as_mut().expect("a pipe");
        output.read_exact(&mut line).expect("the file system is mounted");
        Self { process, folder: folder.to_owned() }
    }

    /// A command that runs a program in the namespace, as this user and group.
    pub(super) fn command(&self, program: &Path, (user, group): (u32, u32)) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--mount=/proc/{}/ns/mnt", self.process.id()))
            .args(["setpriv", "--clear-groups"]);
        command.args(["--reuid", &user.to_string(), "--regid", &group.to_string()]);
        command.arg(program).current_dir(&self.folder).stdin(Stdio::null()).process_group(0);
        command
    }

    /// Fills the file system to the last block, or empties it again.
    pub(super) fn fill(&self, full: bool) {
        // /proc/ID/root shows the files of the holder's namespace.
        let root = format!("/proc/{}/root", self.process.id());
        let file = format!("{root}{}/filler", small_folder(&self.folder).display());
        if !full {
            std::fs::remove_file(file).expect("the filler is there");
            return;
        }
        let mut filler = File::create(file).expect("root may");
        let zeros = vec![0_u8; 64 * 1024];
        while filler.write_all(&zeros).is_ok() {}
    }
}

impl Drop for MountHolder {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
