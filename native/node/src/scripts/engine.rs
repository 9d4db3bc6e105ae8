//! In the program: starts the process of an engine for each script of a request, reports the run of a transaction to it, and answers
//! its queries of memory and state.

use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use alloy_primitives::{Address, U256};
use rootlight::consensus::RuleSet;
use rootlight::evm::precompiles::Precompile;
use rootlight::evm::{FrameClose, LiveState};
use rootlight::exec::trace::{
    Script, ScriptContext, ScriptEngine, ScriptError, ScriptFrame, ScriptHooks, ScriptRun, ScriptStep,
};
use serde_json::value::RawValue;

use super::frame::{Frame, OUT_OF_TIME, Tag, out_of_time, query};
use super::program::EngineProgram;

/// Most reads of accounts, codes and storage words by the script of a request: as many as a run may read.
const MAX_READS: usize = rootlight::exec::MAX_KEYS;
/// Most bytes that a script may read beyond the end of the memory, where zeros are; as in geth.
const MAX_PADDING: usize = 1 << 20;
/// Refusal of a query of the state at a time when the run does not pass its state.
const NO_STATE: &str = "the state can be read in step, fault and result only";
/// Refusal of a query of the present instruction where there is none.
const NO_STEP: &str = "an instruction can be read in step and fault only";

/// How long an engine may go on after its time before it is killed, so that it can report the end of its time itself.
const GRACE: Duration = Duration::from_secs(1);

/// Starts an engine for each script.
#[derive(Debug)]
pub(super) struct JsEngine {
    program: EngineProgram,
    /// Time limit of a message's scripts.
    limit: Duration,
    /// The time that all runs of one message share. Without it, each run has the whole limit.
    message: Option<ScriptTime>,
}

impl JsEngine {
    /// An engine whose processes run this program. A script takes at most `limit`.
    pub(super) fn new(program: EngineProgram, limit: Duration) -> Self {
        Self { program, limit, message: None }
    }
}

impl ScriptEngine for JsEngine {
    fn for_message(&self) -> Arc<dyn ScriptEngine> {
        let message = Some(ScriptTime::new(self.limit));
        Arc::new(Self { program: self.program.clone(), limit: self.limit, message })
    }

    fn begin(&self, script: &Script) -> Result<Box<dyn ScriptRun>, ScriptError> {
        let time = self.message.clone().unwrap_or_else(|| ScriptTime::new(self.limit));
        let left = time.left()?;
        let link = Link::started(&self.program, left.saturating_add(GRACE))
            .map_err(|error| ScriptError(format!("cannot start the engine: {error}")))?;
        Ok(Box::new(JsRun::new(link, script, time)?))
    }
}

/// The time of a message's scripts. A light client runs a script anew after each exchange with its upstreams; all these runs share the
/// time.
#[derive(Clone, Debug)]
pub(super) struct ScriptTime {
    limit: Duration,
    spent: Arc<Mutex<Duration>>,
}

impl ScriptTime {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, spent: Arc::default() }
    }

    /// The rest of the time; an error if none is left.
    pub(super) fn left(&self) -> Result<Duration, ScriptError> {
        let left = self.limit.saturating_sub(*lock(&self.spent));
        if left.is_zero() { Err(ScriptError(out_of_time(self.limit))) } else { Ok(left) }
    }

    pub(super) fn spend(&self, time: Duration) {
        let mut spent = lock(&self.spent);
        *spent = spent.saturating_add(time);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The process of an engine. A watching thread kills it after its time, so that no thread waits for it forever.
struct EngineProcess {
    child: Arc<Mutex<Child>>,
    /// Whether the watching thread has killed it.
    is_overdue: Arc<AtomicBool>,
    /// Ends the watching thread when it is dropped.
    _watched: Sender<()>,
}

impl EngineProcess {
    /// Watches a process, which is killed after `patience`.
    fn watched(child: Child, patience: Duration) -> io::Result<Self> {
        let (watched, ended) = channel();
        let child = Arc::new(Mutex::new(child));
        let process = Self { child, is_overdue: Arc::default(), _watched: watched };
        let (child, is_overdue) = (process.child.clone(), process.is_overdue.clone());
        let watch = move || {
            if ended.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                is_overdue.store(true, Ordering::SeqCst);
                let _ = lock(&child).kill();
            }
        };
        thread::Builder::new().name("script watch".into()).spawn(watch)?;
        Ok(process)
    }

    /// Whether the engine has ended because its time was over.
    fn is_out_of_time(&self) -> bool {
        let mut child = lock(&self.child);
        // An engine that has closed its output, or sent bytes that are no frame, is of no more use.
        let _ = child.try_wait().map(|status| status.is_none().then(|| child.kill()));
        let ended = child.wait().is_ok_and(|status| status.code() == Some(OUT_OF_TIME.into()));
        ended || self.is_overdue.load(Ordering::SeqCst)
    }
}

impl Drop for EngineProcess {
    fn drop(&mut self) {
        let mut child = lock(&self.child);
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// The connection to an engine: `input` reads its output, `output` writes its input.
pub(super) struct Link {
    input: Box<dyn Read>,
    output: Box<dyn Write>,
    /// `None` for an engine in this process.
    process: Option<EngineProcess>,
}

impl Link {
    /// Starts an engine, which is ended after this time.
    fn started(program: &EngineProgram, patience: Duration) -> io::Result<Self> {
        let mut child = Command::new(&program.path)
            .arg(&program.argument)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (output, input) = (child.stdin.take(), child.stdout.take());
        let process = EngineProcess::watched(child, patience)?;
        let (Some(output), Some(input)) = (output, input) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok(Self {
            input: Box::new(io::BufReader::new(input)),
            output: Box::new(output),
            process: Some(process),
        })
    }

    /// A link to an engine in this process.
    #[cfg(test)]
    pub(super) fn of(input: impl Read + 'static, output: impl Write + 'static) -> Self {
        Self { input: Box::new(input), output: Box::new(output), process: None }
    }

    fn send(&mut self, frame: &Frame) -> io::Result<()> {
        frame.send(&mut *self.output)
    }

    fn receive(&mut self) -> io::Result<Frame> {
        Frame::receive(&mut *self.input)
    }

    /// Whether the engine has ended because its time was over.
    fn is_out_of_time(&self) -> bool {
        self.process.as_ref().is_some_and(EngineProcess::is_out_of_time)
    }
}

/// The data that a script can query during the present report.
#[derive(Default)]
struct QueryableData<'a> {
    step: Option<&'a ScriptStep<'a>>,
    state: Option<&'a mut dyn LiveState>,
}

/// A script that traces the transactions of one request.
pub(super) struct JsRun {
    link: Link,
    begun: Instant,
    time: ScriptTime,
    /// The rules of the present transaction's block.
    rules: Option<RuleSet>,
    /// Number of reads of the state so far.
    reads: usize,
}

impl JsRun {
    pub(super) fn new(mut link: Link, script: &Script, time: ScriptTime) -> Result<Self, ScriptError> {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (begun, left) = (Instant::now(), time.left()?);
        let begin = Frame::new(Tag::Begin).text(&script.source).text(&script.config).number(millis(left));
        let begin = begin.number(millis(time.limit));
        let sent = link.send(&begin);
        let mut run = Self { link, begun, time, rules: None, reads: 0 };
        sent.map_err(|error| run.lost(&error))?;
        Ok(run)
    }

    /// The error after the engine has not answered.
    fn lost(&mut self, error: &io::Error) -> ScriptError {
        ScriptError(match self.link.is_out_of_time() {
            true => out_of_time(self.time.limit),
            false => format!("the engine ended early, as when memory is used up ({error})"),
        })
    }

    /// Sends a report to the engine, and answers its queries until it has taken the report.
    fn ask(&mut self, frame: &Frame, mut data: QueryableData<'_>) -> Result<Frame, ScriptError> {
        let mut frame = frame.clone();
        loop {
            let sent = self.link.send(&frame);
            let mut got = sent.and_then(|()| self.link.receive()).map_err(|error| self.lost(&error))?;
            match got.tag {
                Tag::Done => return Ok(got),
                Tag::Failed => {
                    return Err(ScriptError(got.take_text().map_err(|error| self.lost(&error))?));
                }
                _ => {
                    frame = match self.answer(&mut got, &mut data).map_err(|error| self.lost(&error))? {
                        Ok(answer) => Frame::new(Tag::Answer).bytes(&answer),
                        Err(refusal) => Frame::new(Tag::Refusal).text(&refusal),
                    };
                }
            }
        }
    }

    /// Answers a query. The inner error is a refusal for the script; the outer one means that the engine does not keep to the protocol.
    fn answer(
        &mut self,
        asked: &mut Frame,
        data: &mut QueryableData<'_>,
    ) -> io::Result<Result<Vec<u8>, String>> {
        let kind = asked.take_number()?;
        if kind == query::NATIVE {
            let address = Address::from(asked.take_array::<20>()?);
            let native = self.rules.is_some_and(|rules| Precompile::at(&address, rules).is_some());
            return Ok(Ok(vec![u8::from(native)]));
        }
        if matches!(kind, query::MEMORY | query::CONTRACT) {
            let Some(step) = data.step else { return Ok(Err(NO_STEP.into())) };
            return match kind {
                query::MEMORY => Ok(memory(step.memory, asked.take_number()?, asked.take_number()?)),
                _ => Ok(Ok(contract(step))),
            };
        }
        let Some(state) = &mut data.state else { return Ok(Err(NO_STATE.into())) };
        self.reads = self.reads.saturating_add(1);
        if self.reads > MAX_READS {
            return Ok(Err(format!("a script reads the state at most {MAX_READS} times")));
        }
        let address = Address::from(asked.take_array::<20>()?);
        Ok(Ok(match kind {
            query::ACCOUNT => match state.account(address) {
                Some((nonce, balance)) => {
                    [&[1][..], &nonce.to_be_bytes(), &balance.to_be_bytes::<32>()].concat()
                }
                // 41 bytes: the account does not exist, and nonce and balance are 0.
                None => vec![0; 41],
            },
            query::CODE => state.code(address).to_vec(),
            query::WORD => {
                state.word(address, U256::from_be_bytes(asked.take_array::<32>()?)).to_be_bytes_vec()
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }))
    }
}

/// A range of the memory, with zeros beyond its end.
fn memory(memory: &[u8], begin: u64, end: u64) -> Result<Vec<u8>, String> {
    let range = usize::try_from(begin).ok().zip(usize::try_from(end).ok());
    let most = memory.len().saturating_add(MAX_PADDING);
    let Some((begin, end)) = range.filter(|(begin, end)| begin <= end && *end <= most) else {
        return Err(format!("memory of {} bytes was read from {begin} to {end}", memory.len()));
    };
    let present = memory.get(begin.min(memory.len())..end.min(memory.len())).unwrap_or_default();
    let mut range = present.to_vec();
    range.resize(end.saturating_sub(begin), 0);
    Ok(range)
}

/// The answer to [`query::CONTRACT`], which the prelude cuts by offsets.
fn contract(step: &ScriptStep<'_>) -> Vec<u8> {
    let value = step.value.to_be_bytes::<32>();
    [step.caller.as_slice(), step.contract.as_slice(), &value, step.input].concat()
}

/// The report of an instruction. `prelude.js` names the numbers in this order.
fn step_frame(tag: Tag, step: &ScriptStep<'_>) -> Frame {
    let stack: Vec<u8> = step.stack.iter().flat_map(|word| word.to_be_bytes::<32>()).collect();
    let numbers = [
        u64::from(step.opcode),
        step.pc as u64,
        step.gas,
        step.cost,
        step.depth as u64,
        step.refund,
        step.memory.len() as u64,
    ];
    let frame = numbers.into_iter().fold(Frame::new(tag), Frame::number).text(&step.name);
    frame.optional(step.error.as_deref().map(str::as_bytes)).bytes(&stack)
}

impl Drop for JsRun {
    fn drop(&mut self) {
        self.time.spend(self.begun.elapsed());
    }
}

impl ScriptRun for JsRun {
    fn start(&mut self, rules: RuleSet) -> Result<ScriptHooks, ScriptError> {
        self.rules = Some(rules);
        let mut done = self.ask(&Frame::new(Tag::Start), QueryableData::default())?;
        let hooks = done.take_number().map_err(|error| self.lost(&error))?;
        // The bits are those that `load` of the prelude returns.
        Ok(ScriptHooks { steps: hooks & 1 != 0, frames: hooks & 2 != 0 })
    }

    fn step(&mut self, step: &ScriptStep<'_>, state: &mut dyn LiveState) -> Result<(), ScriptError> {
        self.ask(&step_frame(Tag::Step, step), QueryableData { step: Some(step), state: Some(state) })
            .map(drop)
    }

    fn fault(&mut self, step: &ScriptStep<'_>, state: &mut dyn LiveState) -> Result<(), ScriptError> {
        self.ask(&step_frame(Tag::Fault, step), QueryableData { step: Some(step), state: Some(state) })
            .map(drop)
    }

    fn enter(&mut self, frame: &ScriptFrame<'_>) -> Result<(), ScriptError> {
        // Zeros for a creation whose address was not computed.
        let to = frame.to.unwrap_or_default();
        let value = frame.value.map(|value| value.to_be_bytes::<32>());
        let message =
            Frame::new(Tag::Enter).text(frame.kind).bytes(frame.from.as_slice()).bytes(to.as_slice());
        let message =
            message.bytes(frame.input).number(frame.gas).optional(value.as_ref().map(|value| &value[..]));
        self.ask(&message, QueryableData::default()).map(drop)
    }

    fn exit(&mut self, close: &FrameClose) -> Result<(), ScriptError> {
        let error = close.failure.map(|failure| match failure {
            Some(reason) => format!("{reason}"),
            // REVERT.
            None => "execution reverted".into(),
        });
        let frame = Frame::new(Tag::Exit).number(close.gas_used).bytes(&close.output);
        self.ask(&frame.optional(error.as_deref().map(str::as_bytes)), QueryableData::default()).map(drop)
    }

    fn result(
        &mut self,
        context: &ScriptContext<'_>,
        state: &mut dyn LiveState,
    ) -> Result<Box<RawValue>, ScriptError> {
        let kind = if context.creates { "CREATE" } else { "CALL" };
        let frame = Frame::new(Tag::Result).text(kind);
        let frame = frame.bytes(context.from.as_slice()).bytes(context.to.as_slice()).bytes(context.input);
        let frame = frame.number(context.gas).number(context.gas_used).number(context.block);
        let frame = frame
            .bytes(&context.gas_price.to_be_bytes::<32>())
            .bytes(&context.value.to_be_bytes::<32>())
            .bytes(context.output);
        let frame = frame.optional(context.error.as_deref().map(str::as_bytes));
        let frame = match &context.mined_at {
            Some((block, index, hash)) => {
                frame.optional(Some(block.as_slice())).number(*index as u64).bytes(hash.as_slice())
            }
            None => frame.optional(None),
        };
        let mut done = self.ask(&frame, QueryableData { step: None, state: Some(state) })?;
        let json = done.take_text().map_err(|error| self.lost(&error))?;
        serde_json::from_str(&json).map_err(|_| ScriptError("the result is not JSON".into()))
    }
}
