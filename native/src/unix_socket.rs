//! Unix sockets with a mode.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;

use crate::files::make_beside;

/// The file of a socket. Dropping it removes the file, unless another one has replaced it.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    made: Option<(u64, u64)>,
}

impl SocketFile {
    /// Where the socket is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.made.is_some() && identity(&self.path) == self.made {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Makes a socket. A socket that an earlier process has left behind is replaced, but neither one that another process
/// listens on nor another kind of file. The socket is made inside a folder that only its owner can enter and moved from
/// there, so that others cannot connect before it has its mode. Must be called inside a runtime.
///
/// # Errors
/// The path is in use or cannot be written, or is too long for a socket: 108 bytes on Linux, for the folder of the path and 24
/// more.
pub(crate) fn bind(path: &Path, mode: u32) -> io::Result<(UnixListener, SocketFile)> {
    match fs::symlink_metadata(path) {
        Ok(file) if !file.file_type().is_socket() => {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "a file that is not a socket is there"));
        }
        Ok(_) if UnixStream::connect(path).is_ok() => {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another process listens on this socket"));
        }
        _ => {}
    }
    let (folder, ()) = make_beside(path, |folder| DirBuilder::new().mode(0o700).create(folder))?;
    let made = folder.join("s");
    let bound = UnixListener::bind(&made).and_then(|listener| {
        fs::set_permissions(&made, Permissions::from_mode(mode))?;
        let identity = identity(&made);
        fs::rename(&made, path)?;
        Ok((listener, SocketFile { path: path.to_owned(), made: identity }))
    });
    if bound.is_err() {
        let _ = fs::remove_file(&made);
    }
    // The folder is empty: nothing else was made in it.
    let _ = fs::remove_dir(&folder);
    bound
}

#[cfg(test)]
mod tests {
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
