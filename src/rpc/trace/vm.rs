//! The instructions in the traces of the former client Parity (`vmTrace`).

use alloy_primitives::Bytes;
use serde::{Serialize, Serializer, ser::SerializeStruct as _};

use crate::{
    exec::trace::{VmCall, VmEffect, VmStep, VmTrace},
    types::json::{Data, Quantity},
};

/// A call of a trace: its code and instructions.
pub(super) struct VmCode<'a> {
    /// The trace, which has the calls that the instructions start.
    trace: &'a VmTrace,
    /// The call; `None` if the trace has none, which is shown as empty code.
    call: Option<&'a VmCall>,
}

/// An instruction, and the trace with the call that it may start.
struct Instruction<'a>(&'a VmTrace, &'a VmStep);

/// The changes of an instruction.
struct Effect<'a>(&'a VmEffect);

/// The memory that an instruction used, from the offset `off` on.
#[derive(Serialize)]
struct Memory {
    data: Data,
    off: usize,
}

/// The storage cell that an instruction wrote.
#[derive(Serialize)]
struct Stored {
    key: Quantity,
    val: Quantity,
}

impl<'a> VmCode<'a> {
    /// The outermost call.
    pub(super) fn first(trace: &'a VmTrace) -> Self {
        Self { trace, call: trace.calls.first() }
    }
}

/// The instructions of a call. Each is formatted when it is serialized: formatting all of them first would take several times
/// the memory of the answer.
struct Instructions<'a>(&'a VmTrace, &'a [VmStep]);

impl Serialize for Instructions<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.1.iter().map(|step| Instruction(self.0, step)))
    }
}

impl Serialize for VmCode<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("", 2)?;
        let code = self.call.map_or_else(Bytes::new, |call| call.code.clone());
        object.serialize_field("code", &Data(code))?;
        let steps = self.call.map_or(&[][..], |call| &call.steps);
        object.serialize_field("ops", &Instructions(self.trace, steps))?;
        object.end()
    }
}

impl Serialize for Instruction<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(trace, step) = *self;
        let inner = step.inner.map(|index| VmCode { trace, call: trace.calls.get(index) });
        let mut object = serializer.serialize_struct("", 4)?;
        object.serialize_field("cost", &step.cost)?;
        object.serialize_field("ex", &step.effect.as_ref().map(Effect))?;
        object.serialize_field("pc", &step.pc)?;
        object.serialize_field("sub", &inner)?;
        object.end()
    }
}

impl Serialize for Effect<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let VmEffect { left, pushed, memory, stored } = self.0;
        let memory = memory.as_ref().map(|(off, data)| Memory { data: Data(data.clone()), off: *off });
        let stored = stored.map(|(key, val)| Stored { key: Quantity(key), val: Quantity(val) });
        let mut object = serializer.serialize_struct("", 4)?;
        object.serialize_field("mem", &memory)?;
        let pushed: alloc::vec::Vec<_> = pushed.iter().copied().map(Quantity).collect();
        object.serialize_field("push", &pushed)?;
        object.serialize_field("store", &stored)?;
        // Parity's member `used` is the gas that is left.
        object.serialize_field("used", left)?;
        object.end()
    }
}
