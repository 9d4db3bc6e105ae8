//! Unix sockets with a mode.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;

/// Makes a socket, and replaces one that is at this path. The socket is made inside a folder that only its owner can
/// enter and moved from there, so that others cannot connect before it has its mode. Must be called inside a runtime.
///
/// # Errors
/// The path cannot be written, or is too long for a socket (108 bytes on Linux, with 6 for the folder).
pub(crate) fn bind(path: &Path, mode: u32) -> io::Result<UnixListener> {
    let mut folder = path.as_os_str().to_owned();
    folder.push(".new");
    let folder = PathBuf::from(folder);
    let _ = fs::remove_dir_all(&folder);
    DirBuilder::new().mode(0o700).create(&folder)?;
    let made = folder.join("s");
    let bound = UnixListener::bind(&made).and_then(|listener| {
        fs::set_permissions(&made, Permissions::from_mode(mode))?;
        fs::rename(&made, path)?;
        Ok(listener)
    });
    let _ = fs::remove_dir_all(&folder);
    bound
}
