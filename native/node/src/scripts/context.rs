//! In the engine's process: traces one transaction by a script in QuickJS. The program's reports arrive as frames, and each calls a
//! function of the prelude (`prelude.js`), which calls the script.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Instant;

use alloy_primitives::{Address, B256, keccak256};
use rquickjs::context::EvalOptions;
use rquickjs::{CaughtError, Context, Ctx, Exception, Function, Object, Runtime, TypedArray, Value};

use super::frame::{Frame, Tag, out_of_time, query};
use super::program_pipe::{ProgramPipe, StartedScript};

/// Most bytes of the heap of a script; bounds memory.
const MAX_HEAP: usize = 64 << 20;
/// Most bytes of the stack of a script; deeper recursion is an error of the script.
const MAX_STACK: usize = 1 << 20;
/// Most bytes of a trace: the limit of all traces of a request.
const MAX_RESULT: usize = rootlight::exec::trace::MAX_TRACE_BYTES;
/// Most characters of a script's own error.
const MAX_ERROR: usize = 400;

/// The objects and functions that scripts get. They call the functions of [`host_functions`].
const PRELUDE: &str = include_str!("prelude.js");

/// The pipe to the program, which the functions of the script's context share.
type SharedPipe = Rc<RefCell<ProgramPipe>>;
/// The result of a call to QuickJS.
type Js<T> = rquickjs::Result<T>;

/// Why a trace ended early.
enum Failure {
    /// An error of the script, or a limit of the engine.
    Script(rquickjs::Error),
    /// A result that is too long.
    TooLong,
    /// The pipe to the program failed.
    ProgramPipe(io::Error),
}

impl From<rquickjs::Error> for Failure {
    fn from(error: rquickjs::Error) -> Self {
        Self::Script(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::ProgramPipe(error)
    }
}

/// Traces one transaction. The inner error is the text that the caller reads; the outer one is a failure of the pipe.
pub(super) fn trace(pipe: &SharedPipe, script: &StartedScript) -> io::Result<Result<(), String>> {
    let end = script.end;
    let made = Runtime::new().and_then(|runtime| {
        runtime.set_memory_limit(MAX_HEAP);
        runtime.set_max_stack_size(MAX_STACK);
        runtime.set_interrupt_handler(Some(Box::new(move || Instant::now() > end)));
        Context::full(&runtime)
    });
    let context = match made {
        Ok(context) => context,
        Err(error) => return Ok(Err(format!("the engine does not start: {error}"))),
    };
    context.with(|ctx| {
        // The function of the script that runs, for the error's text.
        let mut function = "script";
        match traced(&ctx, pipe, script, &mut function) {
            Ok(()) => Ok(Ok(())),
            Err(Failure::ProgramPipe(error)) => Err(error),
            Err(_) if Instant::now() > end => Ok(Err(out_of_time(script.limit))),
            Err(Failure::TooLong) => Ok(Err(format!("the result has more than {MAX_RESULT} bytes"))),
            Err(Failure::Script(error)) => Ok(Err(format!("{function}: {}", text(&ctx, error)))),
        }
    })
}

/// The text of a script's error, cut to [`MAX_ERROR`].
fn text(ctx: &Ctx<'_>, error: rquickjs::Error) -> String {
    let text = match CaughtError::from_error(ctx, error) {
        CaughtError::Error(error) => error.to_string(),
        CaughtError::Exception(exception) => exception.message().unwrap_or_else(|| "an error".into()),
        // QuickJS throws `null` if it cannot allocate even an error.
        CaughtError::Value(value) if value.is_null() => "out of memory".into(),
        CaughtError::Value(value) => match value.as_string().map(rquickjs::String::to_string) {
            Some(Ok(text)) => text,
            _ => "the script threw a value that is no error".into(),
        },
    };
    text.chars().take(MAX_ERROR).collect()
}

/// The functions of the prelude, one for each kind of report.
struct Reports<'js> {
    step: Function<'js>,
    fault: Function<'js>,
    enter: Function<'js>,
    exit: Function<'js>,
    result: Function<'js>,
}

/// Loads the script, and passes reports to it until the transaction ends. `function` is set to the function of the script that runs.
fn traced<'js>(
    ctx: &Ctx<'js>,
    pipe: &SharedPipe,
    script: &StartedScript,
    function: &mut &'static str,
) -> Result<(), Failure> {
    let prelude: Function<'js> = ctx.eval(PRELUDE)?;
    let api: Object<'js> = prelude.call((host_functions(ctx, pipe)?,))?;
    let mut options = EvalOptions::default();
    // As geth runs scripts: without `use strict`, unless they say so.
    options.strict = false;
    let tracer: Value<'js> = ctx.eval_with_options(format!("({}\n)", script.source), options)?;
    let load: Function<'js> = api.get("load")?;
    let hooks: u32 = load.call((tracer, script.config.as_str()))?;
    let reports = Reports {
        step: api.get("step")?,
        fault: api.get("fault")?,
        enter: api.get("enter")?,
        exit: api.get("exit")?,
        result: api.get("result")?,
    };
    // The first answer says which reports the script takes.
    let mut done = Frame::new(Tag::Done).number(u64::from(hooks));
    loop {
        pipe.borrow_mut().send(&done)?;
        let mut frame = pipe.borrow_mut().receive()?;
        match frame.tag {
            Tag::Step | Tag::Fault => {
                let is_step = frame.tag == Tag::Step;
                *function = if is_step { "step" } else { "fault" };
                step(ctx, if is_step { &reports.step } else { &reports.fault }, &mut frame)?;
            }
            Tag::Enter => {
                *function = "enter";
                enter(ctx, &reports.enter, &mut frame)?;
            }
            Tag::Exit => {
                *function = "exit";
                exit(ctx, &reports.exit, &mut frame)?;
            }
            Tag::Result => {
                *function = "result";
                let trace = result(ctx, &reports.result, &mut frame)?;
                return Ok(pipe.borrow_mut().send(&Frame::new(Tag::Done).text(&trace))?);
            }
            _ => return Err(io::Error::from(io::ErrorKind::InvalidData).into()),
        }
        done = Frame::new(Tag::Done);
    }
}

/// Copies bytes into the script's heap, whose limit counts them there.
fn bytes<'js>(ctx: &Ctx<'js>, bytes: impl AsRef<[u8]>) -> Js<TypedArray<'js, u8>> {
    TypedArray::new_copy(ctx.clone(), bytes)
}

/// A number of the program. Numbers beyond 2^53 lose their last digits, as all numbers of JavaScript do.
fn number(frame: &mut Frame) -> io::Result<f64> {
    Ok(frame.take_number()? as f64)
}

/// A text that may be missing.
fn optional_text(frame: &mut Frame) -> io::Result<Option<String>> {
    Ok(frame.take_optional()?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Reports an instruction, whose seven numbers have the order of `step_frame` in `engine.rs`.
fn step<'js>(ctx: &Ctx<'js>, report: &Function<'js>, frame: &mut Frame) -> Result<(), Failure> {
    let mut numbers = Vec::with_capacity(7);
    for _ in 0..7 {
        numbers.push(number(frame)?);
    }
    let (name, error, stack) = (frame.take_text()?, optional_text(frame)?, frame.take_bytes()?);
    let numbers: TypedArray<'js, f64> = TypedArray::new_copy(ctx.clone(), numbers)?;
    Ok(report.call((numbers, name, error, bytes(ctx, stack)?))?)
}

/// Reports the begin of an inner call.
fn enter<'js>(ctx: &Ctx<'js>, report: &Function<'js>, frame: &mut Frame) -> Result<(), Failure> {
    let kind = frame.take_text()?;
    let (from, to, input) = (frame.take_bytes()?, frame.take_bytes()?, frame.take_bytes()?);
    let (gas, value) = (number(frame)?, frame.take_optional()?);
    let value = value.map(|value| bytes(ctx, value)).transpose()?;
    let (from, to, input) = (bytes(ctx, from)?, bytes(ctx, to)?, bytes(ctx, input)?);
    Ok(report.call((kind, from, to, input, gas, value))?)
}

/// Reports the end of an inner call.
fn exit<'js>(ctx: &Ctx<'js>, report: &Function<'js>, frame: &mut Frame) -> Result<(), Failure> {
    let (gas_used, output, error) = (number(frame)?, frame.take_bytes()?, optional_text(frame)?);
    Ok(report.call((gas_used, bytes(ctx, output)?, error))?)
}

/// Reports the end of the transaction; returns the script's trace in JSON.
fn result<'js>(ctx: &Ctx<'js>, report: &Function<'js>, frame: &mut Frame) -> Result<String, Failure> {
    let object = Object::new(ctx.clone())?;
    object.set("type", frame.take_text()?)?;
    for name in ["from", "to", "input"] {
        object.set(name, bytes(ctx, frame.take_bytes()?)?)?;
    }
    for name in ["gas", "gasUsed", "block"] {
        object.set(name, number(frame)?)?;
    }
    for name in ["gasPrice", "value", "output"] {
        object.set(name, bytes(ctx, frame.take_bytes()?)?)?;
    }
    if let Some(error) = optional_text(frame)? {
        object.set("error", error)?;
    }
    if let Some(block) = frame.take_optional()? {
        object.set("blockHash", bytes(ctx, block)?)?;
        object.set("txIndex", number(frame)?)?;
        object.set("txHash", bytes(ctx, frame.take_bytes()?)?)?;
    }
    let json: rquickjs::String<'js> = report.call((object,))?;
    let json = json.to_string()?;
    if json.len() > MAX_RESULT { Err(Failure::TooLong) } else { Ok(json) }
}

/// The functions of this process that the prelude calls, as its object `host`. Bytes from scripts arrive as hexadecimal text.
fn host_functions<'js>(ctx: &Ctx<'js>, pipe: &SharedPipe) -> Js<Object<'js>> {
    let host_functions = Object::new(ctx.clone())?;
    let account = |kind: u64| {
        let pipe = pipe.clone();
        move |ctx: Ctx<'js>, address: String| {
            ask(&ctx, &pipe, Frame::new(Tag::Query).number(kind).bytes(&unhex(&ctx, &address)?))
        }
    };
    for (name, kind) in [("account", query::ACCOUNT), ("code", query::CODE), ("native", query::NATIVE)] {
        host_functions.set(name, Function::new(ctx.clone(), account(kind))?)?;
    }
    let of_word = pipe.clone();
    let word = move |ctx: Ctx<'js>, address: String, slot: String| {
        let query = Frame::new(Tag::Query).number(query::WORD).bytes(&unhex(&ctx, &address)?);
        ask(&ctx, &of_word, query.bytes(&unhex(&ctx, &slot)?))
    };
    host_functions.set("word", Function::new(ctx.clone(), word)?)?;
    let of_memory = pipe.clone();
    let memory = move |ctx: Ctx<'js>, begin: f64, end: f64| {
        // The prelude has checked that these are whole numbers.
        ask(
            &ctx,
            &of_memory,
            Frame::new(Tag::Query).number(query::MEMORY).number(begin as u64).number(end as u64),
        )
    };
    host_functions.set("memory", Function::new(ctx.clone(), memory)?)?;
    let of_contract = pipe.clone();
    let contract =
        move |ctx: Ctx<'js>| ask(&ctx, &of_contract, Frame::new(Tag::Query).number(query::CONTRACT));
    host_functions.set("contract", Function::new(ctx.clone(), contract)?)?;
    let created = |ctx: Ctx<'js>, from: String, nonce: f64| {
        let from = Address::left_padding_from(&unhex(&ctx, &from)?);
        bytes(&ctx, from.create(nonce as u64))
    };
    host_functions.set("created", Function::new(ctx.clone(), created)?)?;
    let created2 = |ctx: Ctx<'js>, from: String, salt: String, code: String| {
        let from = Address::left_padding_from(&unhex(&ctx, &from)?);
        let salt = B256::left_padding_from(&unhex(&ctx, &salt)?);
        bytes(&ctx, from.create2(salt, keccak256(unhex(&ctx, &code)?)))
    };
    host_functions.set("created2", Function::new(ctx.clone(), created2)?)?;
    Ok(host_functions)
}

/// Sends a query to the program; throws its refusal as an error of the script.
fn ask<'js>(ctx: &Ctx<'js>, pipe: &SharedPipe, query: Frame) -> Js<TypedArray<'js, u8>> {
    let exchanged = || -> io::Result<(Tag, Vec<u8>)> {
        let mut pipe = pipe.borrow_mut();
        pipe.send(&query)?;
        let mut answer = pipe.receive()?;
        Ok((answer.tag, answer.take_bytes()?))
    };
    match exchanged() {
        Ok((Tag::Answer, answer)) => bytes(ctx, answer),
        Ok((_, refusal)) => Err(Exception::throw_message(ctx, &String::from_utf8_lossy(&refusal))),
        Err(error) => Err(Exception::throw_message(ctx, &error.to_string())),
    }
}

fn unhex(ctx: &Ctx<'_>, text: &str) -> Js<Vec<u8>> {
    alloy_primitives::hex::decode(text).map_err(|error| Exception::throw_message(ctx, &error.to_string()))
}
