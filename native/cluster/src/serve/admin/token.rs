//! The token of the admin page, in a file that only its owner can read.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use alloy_primitives::B256;
use data_encoding::BASE64URL_NOPAD;
use rootlight_limits::files;
use rootlight_limits::io_words::of_path;
use rootlight_server::keys::hash;
use subtle::ConstantTimeEq as _;

/// Random bytes of a token that the program makes; as text they have 43 characters.
const RANDOM_BYTES: usize = 32;
/// Shortest token, in characters. A token of this length cannot be guessed if its characters are random.
const MIN_CHARS: usize = 32;
/// Longest token, in characters.
const MAX_CHARS: usize = 512;
/// Longest file that is read, in bytes: the longest token, and white space around it.
const MAX_FILE_BYTES: u64 = 1024;

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages show the fields")]
pub enum TokenError {
    /// The file cannot be read or written.
    #[error("the token of the admin page, {path}: {}", of_path(.source))]
    File { path: PathBuf, source: io::Error },
    /// The file does not contain a token.
    #[error(
        "{path} has no token: write 32 to 512 visible ASCII characters into it, or remove it to get a new one"
    )]
    Unusable { path: PathBuf },
    /// The operating system provides no random numbers.
    #[error("no random numbers: {0}")]
    Random(getrandom::Error),
}

/// The token of an admin page. Only its SHA-256 hash is in memory.
pub struct AdminToken(B256);

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminToken")
    }
}

impl AdminToken {
    /// A token of 32 to 512 visible ASCII characters; `None` for other texts.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let usable =
            (MIN_CHARS..=MAX_CHARS).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
        usable.then(|| Self(hash(text.as_bytes())))
    }

    /// Reads the token of a file, which other users must not be able to read. If there is no file, this function makes one with a
    /// random token.
    ///
    /// # Errors
    /// [`TokenError`]: the file cannot be used.
    pub fn open(path: &Path) -> Result<Self, TokenError> {
        let read = match files::read_secret(path, MAX_FILE_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make(path)?;
                // The file is read again: another front end may have made it first, with another token.
                files::read_secret(path, MAX_FILE_BYTES)
            }
            read => read,
        };
        let bytes = read.map_err(|source| TokenError::File { path: path.to_owned(), source })?;
        let token = std::str::from_utf8(&bytes).ok().and_then(|text| Self::new(text.trim_ascii()));
        token.ok_or_else(|| TokenError::Unusable { path: path.to_owned() })
    }

    /// Whether a text is the token. The time does not depend on how many characters are right.
    pub(super) fn is(&self, text: &[u8]) -> bool {
        hash(text).0.ct_eq(&self.0.0).into()
    }
}

/// Writes a random token, unless the file exists by then.
fn make(path: &Path) -> Result<(), TokenError> {
    let failed = |source| TokenError::File { path: path.to_owned(), source };
    let mut token = [0; RANDOM_BYTES];
    getrandom::fill(&mut token).map_err(TokenError::Random)?;
    let line = format!("{}\n", BASE64URL_NOPAD.encode(&token));
    files::write_secret_once(path, line.as_bytes()).map_err(failed)
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_token_is_made_once_for_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let token = AdminToken::open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.trim().len(), 43);
        assert!(token.is(text.trim().as_bytes()));
        assert!(!token.is(b"") && !token.is(&text.as_bytes()[..42]) && !token.is(text.as_bytes()));
        assert!(AdminToken::open(&path).unwrap().is(text.trim().as_bytes()), "it stays the same");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left over");
    }

    #[test]
    fn files_that_others_can_read_and_short_tokens_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let write = |text: &str, mode| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            AdminToken::open(&path)
        };
        let good = "0123456789abcdef0123456789abcdef";
        assert!(write(&format!("{good}\n"), 0o600).unwrap().is(good.as_bytes()));
        assert!(write(good, 0o440).is_ok());
        for mode in [0o644, 0o620, 0o601] {
            let refused = write(good, mode).unwrap_err().to_string();
            assert!(refused.contains("chmod 600") && refused.contains(&format!("{mode:o}")), "{refused}");
        }
        assert!(AdminToken::open(Path::new("/dev/zero")).is_err(), "it never ends");
        let long = "x".repeat(513);
        for bad in ["", "short", &good[..31], &format!("{good} {good}"), &format!("{good}é"), &long] {
            assert!(matches!(write(bad, 0o600), Err(TokenError::Unusable { .. })), "{bad}");
        }
    }
}
