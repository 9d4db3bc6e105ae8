//! Texts for I/O errors that users see: the cause, and what to do. Callers put the flag and the path or address before them.

use std::error::Error;
use std::io::{self, ErrorKind};

/// Why a file or a folder cannot be used. An error that this program made with a text of its own keeps that text.
///
/// ```
/// use rootlight_limits::io_words::of_path;
///
/// let failure = std::fs::read("/no/such/file").unwrap_err();
/// assert_eq!(of_path(&failure), "no such file or folder: check the path");
/// ```
#[must_use]
pub fn of_path(failure: &io::Error) -> String {
    if failure.get_ref().is_some() {
        return failure.to_string();
    }
    let words = match failure.kind() {
        ErrorKind::NotFound => "no such file or folder: check the path",
        ErrorKind::PermissionDenied => "this user has no right to it: change its owner or mode, or the path",
        ErrorKind::IsADirectory => "a folder, not a file: give the path of a file",
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
            "a file is in the place of a folder: give another path"
        }
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only: give another path",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "no room is left: free some, or give another path"
        }
        _ => return without_number(failure),
    };
    words.to_owned()
}

/// Why a server cannot be reached. The error may be one of a library, whose sources are searched for the cause.
#[must_use]
pub fn of_connection(failure: &(dyn Error + 'static)) -> String {
    let mut cause = Some(failure);
    while let Some(error) = cause {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        let text = error.to_string().to_lowercase();
        // Some libraries wrap the system's error in a type of their own, from which only the text can be read.
        if kind == Some(ErrorKind::ConnectionRefused) || text.contains("connection refused") {
            return "no program listens there: start the server, or check its address".to_owned();
        }
        if text.contains("failed to lookup address") {
            return "there is no such host: check the address, and whether this machine is online".to_owned();
        }
        cause = error.source();
    }
    without_number(failure)
}

/// The text of an error without its number in the operating system, such as `(os error 2)`.
fn without_number(failure: &(impl Error + ?Sized)) -> String {
    let text = failure.to_string();
    text.split_once(" (os error ").map_or(text.as_str(), |(words, _)| words).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn texts_of_system_errors_have_no_error_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error_text = |done: io::Result<()>| of_path(&done.unwrap_err());
        let read = |path: &std::path::Path| std::fs::read(path).map(drop);
        assert!(error_text(read(folder.path())).starts_with("a folder, not a file"));
        assert!(error_text(read(&folder.path().join("none"))).starts_with("no such file"));
        assert!(error_text(read(&file.join("below"))).contains("in the place of a folder"));
        assert!(error_text(std::fs::create_dir_all(&file)).contains("in the place of a folder"));
        assert_eq!(of_path(&io::Error::from_raw_os_error(5)), "Input/output error");
        assert_eq!(of_path(&ErrorKind::NotFound.into()), "no such file or folder: check the path");
        assert_eq!(of_path(&io::Error::new(ErrorKind::PermissionDenied, "own words")), "own words");
    }

    #[test]
    fn a_refused_connection_says_that_no_program_listens_whatever_wraps_the_failure() {
        let refused = io::Error::other(io::Error::from(ErrorKind::ConnectionRefused));
        assert!(of_connection(&refused).starts_with("no program listens there"));
        let lookup = io::Error::other("failed to lookup address information: Name or service not known");
        assert!(of_connection(&lookup).starts_with("there is no such host"));
    }
}
