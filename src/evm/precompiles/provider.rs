//! An empty precompile provider for `revm`: the frame loop calls native contracts itself.

use alloc::string::String;

use revm::context_interface::{Cfg, ContextTr};
use revm::handler::PrecompileProvider;
use revm::interpreter::{CallInputs, InterpreterResult};
use revm::primitives::AddressSet;

/// A provider without native contracts.
#[derive(Debug, Default)]
pub(in crate::evm) struct NoPrecompiles {
    /// Always empty; `revm` asks for a reference to the addresses.
    none: AddressSet,
}

impl<CTX: ContextTr> PrecompileProvider<CTX> for NoPrecompiles {
    type Output = InterpreterResult;

    fn set_spec(&mut self, _: <CTX::Cfg as Cfg>::Spec) -> bool {
        false
    }

    fn run(&mut self, _: &mut CTX, _: &CallInputs) -> Result<Option<InterpreterResult>, String> {
        Ok(None)
    }

    fn warm_addresses(&self) -> &AddressSet {
        &self.none
    }
}
