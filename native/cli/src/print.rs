//! The output of commands.
//!
//! A program that reads the output, such as `head`, may close the pipe early. The rest of the output is then dropped, and the exit
//! code does not change. Any other failure to print, such as a full disk, makes the program end with code 1.

use std::fmt;
use std::io::{self, Write as _};
use std::sync::Mutex;

use rootlight_limits::sanitize::{output, sanitize};

/// The first failure to print, other than that of a closed pipe.
static FAILURE: Mutex<Option<io::Error>> = Mutex::new(None);

/// Prints to the standard output. Parts of the text may come from outside, so invisible and control characters are escaped, apart
/// from line breaks and tabs.
pub(super) fn write(text: fmt::Arguments<'_>) {
    let mut out = io::stdout().lock();
    note(write!(out, "{}", output(text)).and_then(|()| out.flush()));
}

/// Stores the first failure to print; a closed pipe is none.
pub(super) fn note(printed: io::Result<()>) {
    if let Err(error) = printed.or_else(ignore_closed) {
        FAILURE.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error);
    }
}

/// Takes the first failure to print since the last call.
pub(super) fn failure() -> Option<io::Error> {
    FAILURE.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
}

/// Prints a line to the standard error, such as the error that ends a command. A failure to print it cannot be reported.
pub(super) fn write_error(text: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{}", sanitize(text));
}

/// A closed pipe is no failure.
fn ignore_closed(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) }
}

/// As [`std::println`], for readers that may close the pipe.
macro_rules! say {
    () => { $crate::print::write(format_args!("\n")) };
    ($($text:tt)*) => {
        $crate::print::write(format_args!("{}\n", format_args!($($text)*)))
    };
}

pub(super) use say;
