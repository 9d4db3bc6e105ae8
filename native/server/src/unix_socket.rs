//! Unix sockets whose files have a given mode, for the server and for commands on API keys.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use futures::FutureExt as _;
use rootlight_limits::files::make_beside;
use tokio::net::{UnixListener, UnixStream};

/// The file of a socket. Dropping it removes the file, unless another one has replaced it.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// The [`identity`] of the file that was made.
    identity: Option<(u64, u64)>,
}

impl SocketFile {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.identity.is_some() && identity(&self.path) == self.identity {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The device and the inode number of a file, which tell it apart from a later file with the same path.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Makes a socket. A socket that an earlier process has left behind is replaced; a socket on which another process listens and any
/// other kind of file are not. The socket is made inside a folder that only its owner can enter and is then moved to its path,
/// so that other users cannot connect before it has its mode. Must be called inside a runtime.
///
/// # Errors
/// The path is in use or cannot be written, or is too long for a socket. Linux allows 108 bytes, in which the folder of the path
/// and 24 bytes for the name of the temporary folder and socket must fit.
pub(crate) fn bind(path: &Path, mode: u32) -> io::Result<(UnixListener, SocketFile)> {
    match fs::symlink_metadata(path) {
        Ok(file) if !file.file_type().is_socket() => {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "a file that is not a socket is there"));
        }
        Ok(_) => check_abandoned(path)?,
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Err(_) => {}
    }
    let (folder, ()) = make_beside(path, |folder| DirBuilder::new().mode(0o700).create(folder))?;
    let made = folder.join("s");
    let bound = UnixListener::bind(&made).and_then(|listener| {
        fs::set_permissions(&made, Permissions::from_mode(mode))?;
        let identity = identity(&made);
        fs::rename(&made, path)?;
        Ok((listener, SocketFile { path: path.to_owned(), identity }))
    });
    if bound.is_err() {
        let _ = fs::remove_file(&made);
    }
    // The folder is empty, because the socket was moved or removed.
    let _ = fs::remove_dir(&folder);
    bound
}

/// Checks that no process listens on a socket. Only a refused connection proves that no process does: a connection also fails
/// if the queue of the listening process is full or if this program may not connect.
fn check_abandoned(path: &Path) -> io::Result<()> {
    let refuse = |kind, text: String| Err(io::Error::new(kind, text));
    // `now_or_never`, so as not to wait for a process whose queue is full. A connection that is still being made (`None`) was not
    // refused.
    match UnixStream::connect(path).now_or_never() {
        Some(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        None | Some(Ok(_)) => {
            refuse(io::ErrorKind::AddrInUse, "another process listens on this socket".into())
        }
        Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {
            refuse(io::ErrorKind::AddrInUse, "another process listens on this socket, and is busy".into())
        }
        Some(Err(error)) => refuse(
            error.kind(),
            format!("another process may listen on this socket ({error}); if none does, remove the file"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::UnixSocket;

    use super::*;

    #[tokio::test]
    async fn a_socket_is_made_without_touching_anything_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        for other in ["s.new", "s.partial", "s.tmp"] {
            fs::create_dir(folder.path().join(other)).unwrap();
            fs::write(folder.path().join(other).join("own"), "data").unwrap();
        }
        let (listener, file) = bind(&path, 0o640).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4, "nothing is left over");
        assert_eq!(bind(&path, 0o600).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop((listener, file));
        assert!(!path.exists());
        for other in ["s.new", "s.partial", "s.tmp"] {
            assert_eq!(fs::read(folder.path().join(other).join("own")).unwrap(), b"data");
        }
    }

    /// A connection to a process that accepts no connections for a while fails, although the process listens.
    #[tokio::test]
    async fn a_socket_of_a_busy_process_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let busy = UnixSocket::new_stream().unwrap();
        busy.bind(&path).unwrap();
        let busy = busy.listen(0).unwrap();
        let made = identity(&path);
        let mut waiting = Vec::new();
        let full = loop {
            match UnixStream::connect(&path).await {
                Ok(client) => waiting.push(client),
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock, "after {} connections", waiting.len());
        let error = bind(&path, 0o600).unwrap_err();
        assert!(error.to_string().contains("listens on this socket"), "{error}");
        assert_eq!(identity(&path), made);
        // A socket of another kind is not known to be abandoned either.
        drop((busy, waiting));
        fs::remove_file(&path).unwrap();
        let datagrams = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
        let error = bind(&path, 0o600).unwrap_err();
        assert!(error.to_string().contains("remove the file"), "{error}");
        drop(datagrams);
        // A socket at which no program listens is replaced.
        assert!(bind(&path, 0o600).is_ok());
    }

    #[tokio::test]
    async fn only_a_socket_is_replaced_and_only_the_own_one_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        fs::write(&path, "data").unwrap();
        assert!(bind(&path, 0o600).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"data");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(bind(&path, 0o600).is_err());
        fs::remove_dir(&path).unwrap();
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), &path).unwrap();
        assert!(bind(&path, 0o600).is_err(), "a link");
        fs::remove_file(&path).unwrap();
        let (_listener, file) = bind(&path, 0o600).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "of another program").unwrap();
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"of another program");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left over");
    }
}
