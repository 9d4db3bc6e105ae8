//! The engine's side: reads messages and traces one transaction after the other.

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

/// Bytes of the stack of the thread that runs scripts: several times what the engine lets them use.
const STACK: usize = 16 << 20;
/// How long a script may go on after its time, for the engine to say so itself.
const GRACE: Duration = Duration::from_millis(200);

/// Bytes of the address space of this process, in which the engine's heap has 64 MiB: a bound for faults of the engine.
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

/// Gives up what a script that got hold of this process could use: opening files and connections, memory, rights of other
/// programs.
#[cfg(unix)]
fn give_up_rights() -> io::Result<()> {
    let limit = |resource, most| {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) }).map_err(io::Error::from)
    };
    // Input, output and errors are open.
    limit(Resource::Nofile, 3)?;
    limit(Resource::Core, 0)?;
    // Some systems do not limit addresses.
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

/// Ends the process after this time, whatever the script does then.
fn exit_after(limit: Duration) -> io::Result<()> {
    let end = move || {
        thread::sleep(limit);
        std::process::exit(OUT_OF_TIME.into());
    };
    thread::Builder::new().spawn(end).map(drop)
}
