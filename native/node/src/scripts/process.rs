//! In the engine's process: gives up rights, reads the script, and traces one transaction after the other until the input ends.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

#[cfg(unix)]
use rustix::process::{Resource, Rlimit, setrlimit};

use super::context;
use super::frame::{Frame, OUT_OF_TIME, Tag};
use super::program_pipe::{ProgramPipe, StartedScript};

/// Bytes of the stack of the thread that runs scripts: several times the limit that QuickJS checks.
const STACK: usize = 16 << 20;
/// How long a script may go on after its time before the process exits, so that QuickJS can report the end of the time.
const GRACE: Duration = Duration::from_millis(200);

/// Bytes of the address space of this process. The heap of a script has 64 MiB of it; the limit bounds memory if QuickJS has a fault.
#[cfg(unix)]
const ADDRESS_SPACE: u64 = 1 << 30;

/// Runs the engine on standard input and output until they end.
#[must_use]
pub fn run_engine_process() -> ExitCode {
    #[cfg(unix)]
    if give_up_rights().is_err() {
        return ExitCode::FAILURE;
    }
    let run = || serve(io::stdin(), io::BufWriter::new(io::stdout()), true);
    let thread = thread::Builder::new().stack_size(STACK).spawn(run);
    match thread.map(thread::JoinHandle::join) {
        Ok(Ok(Ok(()))) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Gives up what a script that breaks out of QuickJS could use: opening files and connections, memory, and the rights of other
/// programs.
#[cfg(unix)]
fn give_up_rights() -> io::Result<()> {
    let limit = |resource, most| {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) }).map_err(io::Error::from)
    };
    // Standard input, output and error are open, so no further file can be opened.
    limit(Resource::Nofile, 3)?;
    limit(Resource::Core, 0)?;
    // Some systems have no limit of the address space.
    let _ = limit(Resource::As, ADDRESS_SPACE);
    #[cfg(target_os = "linux")]
    rustix::thread::set_no_new_privs(true)?;
    Ok(())
}

/// Serves one script until the input ends. `exits` ends this process when the time of the script is over.
pub(super) fn serve(input: impl Read + 'static, output: impl Write + 'static, exits: bool) -> io::Result<()> {
    let pipe = Rc::new(RefCell::new(ProgramPipe::new(input, output)));
    let mut script = None;
    loop {
        let received = pipe.borrow_mut().receive();
        let mut frame = match received {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            received => received?,
        };
        match (frame.tag, &script) {
            (Tag::Begin, None) => {
                let (source, config) = (frame.take_text()?, frame.take_text()?);
                let left = Duration::from_millis(frame.take_number()?);
                let limit = Duration::from_millis(frame.take_number()?);
                if exits {
                    exit_after(left.saturating_add(GRACE))?;
                }
                let now = Instant::now();
                let end = now.checked_add(left).unwrap_or(now);
                script = Some(StartedScript { source, config, limit, end });
            }
            (Tag::Start, Some(script)) => {
                if let Err(text) = context::trace(&pipe, script)? {
                    pipe.borrow_mut().send(&Frame::new(Tag::Failed).text(&text))?;
                }
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// Ends the process after this time, even inside a built-in call of QuickJS.
fn exit_after(limit: Duration) -> io::Result<()> {
    let end = move || {
        thread::sleep(limit);
        std::process::exit(OUT_OF_TIME.into());
    };
    thread::Builder::new().spawn(end).map(drop)
}
