//! Files that are written whole or not at all, and files with secrets.
//!
//! A file that is being written has a random name beside its final one, and is made only if there is none of that name: nothing
//! that another program has made is written to, followed or removed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;

/// Mode bits that a file with a secret may not have: write for the group, and all bits for others. The group may
/// read, because credentials of systemd and files that are mounted into containers have such modes.
#[cfg(unix)]
const FORBIDDEN: u32 = 0o027;

/// How many random names are tried until one is free. A name has 64 random bits, so that the second try is already rare.
const TRIES: usize = 8;

/// A file under a temporary name. Dropping it removes the file, unless [`Self::replace`] has given it its final name.
#[derive(Debug)]
pub struct NewFile {
    /// The temporary path; `None` once the file has its final name.
    path: Option<PathBuf>,
    file: File,
}

impl NewFile {
    /// Makes an empty file with a temporary name in the folder of `path`. With `is_secret`, only its owner may read and write
    /// it.
    pub fn beside(path: &Path, is_secret: bool) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if is_secret {
            // On other systems the file has the permissions of its folder.
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        let (path, file) = make_beside(path, |path| options.open(path))?;
        Ok(Self { path: Some(path), file })
    }

    /// Writes the contents to the disk, and then renames the file to `path`. A file of this name is replaced.
    pub fn replace(mut self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        if let Some(temporary) = &self.path {
            fs::rename(temporary, path)?;
        }
        self.path = None;
        Ok(())
    }

    /// Gives the file the name `path`, unless a file of this name exists already: that one stays, and this is no error.
    fn keep_older(self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        // A link fails if the name is taken, while a rename would replace the file. Dropping `self` removes the temporary name.
        let linked = self.path.as_ref().map_or(Ok(()), |temporary| fs::hard_link(temporary, path));
        if linked.is_ok() || fs::symlink_metadata(path).is_ok() {
            return Ok(());
        }
        // The link failed although no file has this name: the file system has no links.
        self.replace(path)
    }
}

impl io::Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

/// Reads a file of at most `max_bytes` bytes. Pipes and devices are refused before they are opened: a pipe keeps its readers
/// waiting, and some devices never end.
///
/// # Errors
/// There is no such file, it has more bytes, or it cannot be read.
pub fn read(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    read_open(open(path)?, max_bytes)
}

/// Does what [`read`] does with a file that holds a secret ([`check_secret`]).
///
/// # Errors
/// As [`read`], and those of [`check_secret`].
pub fn read_secret(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    check_secret(&file)?;
    read_open(file, max_bytes)
}

/// Opens a regular file for reading.
fn open(path: &Path) -> io::Result<File> {
    let kind = fs::metadata(path)?.file_type();
    if kind.is_dir() {
        return Err(io::Error::other("a folder, not a regular file: give the path of a file"));
    }
    if !kind.is_file() {
        return Err(io::Error::other("not a regular file: give the path of one"));
    }
    File::open(path)
}

/// Reads an open file of at most `max_bytes` bytes.
fn read_open(file: File, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // The length in the file's metadata is not used, because the file may grow while it is read.
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Err(io::Error::other(format!("more than {max_bytes} bytes")));
    }
    Ok(bytes)
}

/// Writes a file as a whole. After an error the file is the same as before.
pub fn write(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut new = NewFile::beside(path, false)?;
    new.write_all(contents)?;
    new.replace(path)
}

/// Writes a file with a secret for its owner only, unless there is a file already.
pub fn write_secret_once(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut new = NewFile::beside(path, true)?;
    new.write_all(contents)?;
    new.keep_older(path)
}

/// Makes a file or a folder under a random name in the folder of `path`. `make` must fail with `AlreadyExists` if the name is
/// taken; then another name is tried. Returns the path with the result of `make`.
pub fn make_beside<T>(path: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(PathBuf, T)> {
    for _ in 0..TRIES {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let beside = path.with_file_name(format!(".{}.new", HEXLOWER.encode(&random)));
        match make(&beside) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|made| (beside, made)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Checks that only its owner can write a file with a secret, and only its owner and its group can read the file. On systems
/// without such modes nothing is checked.
///
/// # Errors
/// The mode allows more, or cannot be read. The text says what to do.
pub fn check_secret(file: &File) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = file.metadata()?.permissions().mode() & 0o777;
        if mode & FORBIDDEN != 0 {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!(
                    "its mode is {mode:03o}, and it holds a secret: only its owner may write it and only its group may read \
                     it too (chmod 600, or 640)"
                ),
            ));
        }
    }
    #[cfg(not(unix))]
    let _ = file;
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn entries(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_nothing_beside_it_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for other in ["file.new", "file.partial", "file.tmp"] {
            fs::create_dir(folder.path().join(other)).unwrap();
            fs::write(folder.path().join(other).join("own"), "data").unwrap();
        }
        let before = entries(folder.path());
        for text in ["one", "two"] {
            write(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        let mut unfinished = NewFile::beside(&path, false).unwrap();
        unfinished.write_all(b"thr").unwrap();
        assert_eq!(entries(folder.path()).len(), before.len() + 2);
        drop(unfinished);
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        fs::remove_file(&path).unwrap();
        assert_eq!(entries(folder.path()), before);
        assert_eq!(fs::read_to_string(folder.path().join("file.new/own")).unwrap(), "data");
    }

    /// A user who can write to a folder can put a device there, or a pipe.
    #[test]
    fn only_files_are_read_and_no_more_of_them_than_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let [file, device, pipe] = ["file", "device", "pipe"].map(|name| folder.path().join(name));
        fs::write(&file, b"12345").unwrap();
        symlink("/dev/zero", &device).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        for read in [read, read_secret] {
            assert_eq!(read(&file, 5).unwrap(), b"12345");
            for (path, most) in [(&file, 4), (&device, 5), (&pipe, 5)] {
                assert_eq!(read(path, most).unwrap_err().kind(), io::ErrorKind::Other, "{}", path.display());
            }
            assert_eq!(read(&folder.path().join("none"), 5).unwrap_err().kind(), io::ErrorKind::NotFound);
        }
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(read_secret(&file, 5).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_name_that_a_broken_link_takes_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let taken = std::cell::Cell::new(0);
        let made = make_beside(&path, |beside| {
            if taken.replace(taken.get() + 1) < 3 {
                symlink(folder.path().join("elsewhere"), beside).unwrap();
            }
            OpenOptions::new().write(true).create_new(true).open(beside)
        });
        assert_eq!((made.is_ok(), taken.get()), (true, 4));
        assert!(!folder.path().join("elsewhere").exists());
    }

    #[test]
    fn a_secret_is_written_once_for_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        write_secret_once(&path, b"first").unwrap();
        write_secret_once(&path, b"second").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(entries(folder.path()), ["secret"]);
    }

    #[test]
    fn a_secret_that_others_can_use_is_refused_and_the_error_says_what_to_do() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let check = |mode| {
            fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).unwrap();
            check_secret(file.as_file())
        };
        for good in [0o600, 0o400, 0o640, 0o440, 0o700] {
            check(good).unwrap();
        }
        for bad in [0o644, 0o604, 0o666, 0o602, 0o601, 0o660, 0o620] {
            let text = check(bad).unwrap_err().to_string();
            assert!(text.contains(&format!("{bad:o}")) && text.contains("chmod 600"), "{text}");
        }
    }
}
