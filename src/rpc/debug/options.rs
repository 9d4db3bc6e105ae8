//! The options of `debug_trace*`: a tracer and the form of its trace.

use alloc::{boxed::Box, collections::BTreeMap, string::String, vec::Vec};

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

#[cfg(feature = "catalogue")]
use super::scripts;
use super::{
    calls::{self, CallForm},
    prestate::{self, StateForm},
    steps, struct_logs,
};
#[cfg(feature = "catalogue")]
use crate::exec::trace::Script;
use crate::{
    engine::BlockHeader,
    exec::trace::{CallOptions, OpcodeSet, StepOptions, Tracer, TransactionTrace},
    rpc::{
        error::{ParamError, RpcError},
        params::{Params, object},
        trace::{FlatForm, flat},
    },
};

/// Most opcodes in the list `ignoredOpcodes`: as many as there are.
const MAX_OPCODES: usize = 256;
/// Most characters of an unknown tracer's name that its error repeats.
const MAX_NAME: usize = 64;

/// The reference node's own tracer, which is the default.
const REFERENCE: &str = "rskTracer";
/// The tracer that runs several others at once.
const SEVERAL: &str = "muxTracer";
/// The tracers besides [`SEVERAL`]. Names are compared without case.
const TRACERS: [&str; 8] = [
    REFERENCE,
    "structLogger",
    "callTracer",
    "flatCallTracer",
    "prestateTracer",
    "4byteTracer",
    "erc7562Tracer",
    "noopTracer",
];

/// The members of an object of options.
type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// The tracer that a caller chooses: one by name, or a script.
pub(super) enum Tracing {
    Named(TraceForm),
    #[cfg(feature = "catalogue")]
    Script(Script),
}

impl Tracing {
    /// Reads the options of a trace.
    pub(super) fn read(params: Params<'_>, position: usize) -> Result<Self, ParamError> {
        let given: Fields<'_> = params.object(position, "trace options")?.unwrap_or_default();
        #[cfg(feature = "catalogue")]
        if let Some(script) = scripts::read(&given)? {
            return Ok(Self::Script(script));
        }
        TraceForm::of(&given).map(Self::Named)
    }

    /// The tracer that collects the data that the form shows. For a script nothing is collected, because the script observes
    /// the run itself.
    pub(super) fn tracer(&self) -> Tracer {
        match self {
            Self::Named(form) => form.tracer(),
            #[cfg(feature = "catalogue")]
            Self::Script(_) => Tracer::default(),
        }
    }
}

/// How a trace is shown: one form for each named tracer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::rpc) enum TraceForm {
    /// Instructions, in the form of the reference node.
    Reference(StepOptions),
    /// Instructions, in geth's form.
    StructLogs(StepOptions),
    /// A tree of calls.
    Calls(CallForm),
    /// A list of calls.
    Flat(FlatForm),
    /// The state before the transaction, or its changes.
    State(StateForm),
    /// How often each function selector was called, with the length of the call's data.
    Selectors,
    /// A tree of calls with the accesses of each call to state and code, without the ignored opcodes.
    Validation(CallForm, OpcodeSet),
    /// An empty object.
    Nothing,
    /// Several other forms, each once, by the name of its tracer.
    Several(Vec<(&'static str, Self)>),
}

impl TraceForm {
    /// Reads the options of a trace; the default is the reference node's. Unknown options are ignored, as in the
    /// reference node.
    fn of(given: &Fields<'_>) -> Result<Self, ParamError> {
        let config = match given.get("tracerConfig").filter(|config| config.get() != "null") {
            Some(config) => object(config).map_err(|_| wrong("tracerConfig", "an object"))?,
            None => Fields::new(),
        };
        let name: Option<String> = match given.get("tracer") {
            Some(raw) => serde_json::from_str(raw.get()).map_err(|_| wrong("tracer", "a name"))?,
            None => None,
        };
        let name = name.as_deref().unwrap_or(REFERENCE);
        if name.eq_ignore_ascii_case(SEVERAL) {
            return Self::several(&config);
        }
        Self::of_tracer(tracer_name(name)?, Options(&[&config, given]))
    }

    /// The tracers of [`SEVERAL`], each with its options.
    fn several(config: &Fields<'_>) -> Result<Self, ParamError> {
        let mut forms: Vec<(&str, Self)> = Vec::new();
        for (name, raw) in config {
            let name = if name.eq_ignore_ascii_case(SEVERAL) {
                return Err(ParamError::NestedTracer);
            } else {
                tracer_name(name)?
            };
            let own = match raw.get() {
                "null" => Fields::new(),
                _ => object(raw).map_err(|_| wrong(name, "an object"))?,
            };
            let form = Self::of_tracer(name, Options(&[&own]))?;
            let steps = |form: &Self| matches!(form, Self::Reference(_) | Self::StructLogs(_));
            // A run collects instructions with one set of options only, so that both forms of instructions cannot be shown.
            if forms.iter().any(|(other, earlier)| *other == name || steps(earlier) && steps(&form)) {
                return Err(ParamError::RepeatedTracer(name));
            }
            forms.push((name, form));
        }
        Ok(Self::Several(forms))
    }

    /// The form of the tracer of this name in [`TRACERS`].
    fn of_tracer(name: &str, options: Options<'_>) -> Result<Self, ParamError> {
        let flag = |name| options.flag(name);
        // The form of `callTracer`, or of `erc7562Tracer` (`validation`), which always shows inner calls.
        let calls = |validation: bool| -> Result<CallForm, ParamError> {
            Ok(CallForm {
                only_top: !validation && flag("onlyTopCall")?,
                with_log: flag("withLog")?,
                validation,
            })
        };
        Ok(match name {
            "structLogger" => Self::StructLogs(StepOptions {
                disable_storage: flag("disableStorage")?,
                disable_memory: !flag("enableMemory")? || flag("disableMemory")?,
                disable_stack: flag("disableStack")?,
                return_data: flag("enableReturnData")?,
                // As geth, shows the slots that the contract has used, and only with SLOAD and SSTORE.
                used_storage: true,
                limit: options.limit()?,
            }),
            "callTracer" => Self::Calls(calls(false)?),
            "flatCallTracer" => Self::Flat(FlatForm {
                parity_errors: flag("convertParityErrors")?,
                natives: flag("includePrecompiles")?,
            }),
            "prestateTracer" => Self::State(options.state()?),
            "4byteTracer" => Self::Selectors,
            "erc7562Tracer" => Self::Validation(calls(true)?, options.ignored()?),
            "noopTracer" => Self::Nothing,
            // `REFERENCE`, the last one of `TRACERS`.
            _ => Self::Reference(StepOptions {
                disable_storage: flag("disableStorage")?,
                disable_memory: flag("disableMemory")?,
                disable_stack: flag("disableStack")?,
                ..StepOptions::default()
            }),
        })
    }

    /// The tracer that collects what the form shows.
    pub(in crate::rpc) fn tracer(&self) -> Tracer {
        let mut tracer = Tracer::default();
        self.add_to(&mut tracer);
        tracer
    }

    /// Makes a tracer collect the data that this form shows, besides what it collects already.
    fn add_to(&self, tracer: &mut Tracer) {
        let calls = match self {
            Self::Reference(options) | Self::StructLogs(options) => return tracer.steps = Some(*options),
            Self::State(_) => return tracer.state = true,
            Self::Selectors => return tracer.selectors = true,
            Self::Several(forms) => return forms.iter().for_each(|(_, form)| form.add_to(tracer)),
            Self::Nothing => return,
            Self::Flat(_) => CallOptions::default(),
            Self::Calls(form) => CallOptions { with_logs: form.with_log, only_top: form.only_top },
            Self::Validation(form, ignored) => {
                tracer.validation = Some(*ignored);
                CallOptions { with_logs: form.with_log, only_top: false }
            }
        };
        // By default the values to which any other options can be added.
        let earlier = tracer.calls.unwrap_or(CallOptions { with_logs: false, only_top: true });
        tracer.calls = Some(CallOptions {
            with_logs: earlier.with_logs || calls.with_logs,
            only_top: earlier.only_top && calls.only_top,
        });
    }

    /// Whether the list of a block's traces has the bare traces, without `txHash` and `result` around each.
    pub(super) fn is_bare(&self) -> bool {
        matches!(self, Self::Reference(_))
    }

    /// The trace of a transaction of a block in this form; without a block, of a call.
    pub(in crate::rpc) fn to_json(
        &self,
        block: Option<&BlockHeader>,
        trace: &TransactionTrace,
    ) -> Result<Box<RawValue>, RpcError> {
        Ok(match self {
            Self::Reference(options) => steps::to_json(trace, *options)?,
            Self::StructLogs(options) => struct_logs::to_json(trace, *options)?,
            Self::Calls(form) | Self::Validation(form, _) => calls::tree(trace, *form)?,
            Self::Flat(form) => to_raw_value(&flat(block, trace, *form))?,
            Self::State(form) => match &trace.state {
                Some(state) => prestate::to_json(state, *form)?,
                None => to_raw_value(&())?,
            },
            Self::Selectors => {
                let counts = trace.selectors.iter().flatten();
                let named =
                    counts.map(|((selector, len), count)| (alloc::format!("{selector}-{len}"), count));
                to_raw_value(&named.collect::<BTreeMap<_, _>>())?
            }
            Self::Nothing => to_raw_value(&Fields::new())?,
            Self::Several(forms) => {
                let shown = forms.iter().map(|(name, form)| Ok((*name, form.to_json(block, trace)?)));
                to_raw_value(&TracesByName(shown.collect::<Result<_, RpcError>>()?))?
            }
        })
    }
}

/// The result of [`SEVERAL`]: a trace for each tracer.
#[derive(Serialize)]
#[serde(transparent)]
struct TracesByName(BTreeMap<&'static str, Box<RawValue>>);

/// The name in [`TRACERS`] that equals this one without case.
fn tracer_name(name: &str) -> Result<&'static str, ParamError> {
    if let Some(known) = TRACERS.into_iter().find(|known| known.eq_ignore_ascii_case(name)) {
        return Ok(known);
    }
    // The text is the source of a script, which cannot be one of several tracers, and which builds without the feature
    // `catalogue` do not run.
    if name.contains(['{', '(']) {
        return Err(ParamError::TracerCode);
    }
    Err(ParamError::Tracer(name.chars().take(MAX_NAME).collect()))
}

/// The error of an option with a wrong value.
fn wrong(option: &'static str, expected: &'static str) -> ParamError {
    ParamError::TraceOption { option, expected }
}

/// The objects in which an option may be given: `tracerConfig`, and for a single tracer also the object around it.
#[derive(Clone, Copy)]
struct Options<'a>(&'a [&'a Fields<'a>]);

impl Options<'_> {
    /// The values of an option that are not null.
    fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter_map(move |fields| fields.get(name))
            .map(|raw| raw.get())
            .filter(|text| *text != "null")
    }

    /// Whether an option is true. The texts "true" and "false" count as booleans, as in the reference node.
    fn flag(&self, name: &'static str) -> Result<bool, ParamError> {
        let mut set = false;
        for value in self.values(name) {
            set |= match value {
                "true" | "\"true\"" => true,
                "false" | "\"false\"" => false,
                _ => return Err(wrong(name, "true or false")),
            };
        }
        Ok(set)
    }

    /// The bytes of JSON after which no more instructions are shown; 0 shows all.
    fn limit(&self) -> Result<usize, ParamError> {
        let Some(value) = self.values("limit").next() else { return Ok(0) };
        value.parse().map_err(|_| wrong("limit", "a number of bytes"))
    }

    /// The opcodes that `erc7562Tracer` does not count.
    fn ignored(&self) -> Result<OpcodeSet, ParamError> {
        let bad = || wrong("ignoredOpcodes", "an array of opcodes such as 0x5b");
        let Some(value) = self.values("ignoredOpcodes").next() else { return Ok(OpcodeSet::default()) };
        let list: Vec<String> = serde_json::from_str(value).map_err(|_| bad())?;
        if list.len() > MAX_OPCODES {
            return Err(bad());
        }
        let opcode = |text: &String| u8::from_str_radix(text.strip_prefix("0x")?, 16).ok();
        list.iter().map(|text| opcode(text).ok_or_else(bad)).collect()
    }

    /// The form of `prestateTracer`.
    fn state(&self) -> Result<StateForm, ParamError> {
        let form = StateForm {
            diff: self.flag("diffMode")?,
            disable_code: self.flag("disableCode")?,
            disable_storage: self.flag("disableStorage")?,
            include_empty: self.flag("includeEmpty")?,
        };
        if form.diff && form.include_empty {
            return Err(wrong("includeEmpty", "no diffMode beside it"));
        }
        Ok(form)
    }
}
