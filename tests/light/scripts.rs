//! Tracers that are scripts, by a host's engine: one message of a light client has one engine, whatever its rounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::rounds::{TokenFixture, balance_of};
use crate::support::light::{ExecutedUpstream, Light};
use rootlight::consensus::{Network, RuleSet};
use rootlight::evm::{FrameClose, LiveState};
use rootlight::exec::trace::{
    Script, ScriptContext, ScriptEngine, ScriptError, ScriptFrame, ScriptHooks, ScriptRun, ScriptStep,
};
use serde_json::json;
use serde_json::value::RawValue;

/// Counts the messages, and the scripts that begin in one.
#[derive(Clone, Debug, Default)]
struct CountingEngine {
    messages: Arc<AtomicUsize>,
    begun: Arc<AtomicUsize>,
    is_of_message: bool,
}

/// A script that takes no reports, and whose trace is the output.
struct OutputScript;

impl ScriptEngine for CountingEngine {
    fn for_message(&self) -> Arc<dyn ScriptEngine> {
        self.messages.fetch_add(1, Ordering::SeqCst);
        Arc::new(Self { is_of_message: true, ..self.clone() })
    }

    fn begin(&self, _: &Script) -> Result<Box<dyn ScriptRun>, ScriptError> {
        assert!(self.is_of_message);
        self.begun.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(OutputScript))
    }
}

impl ScriptRun for OutputScript {
    fn start(&mut self, _: RuleSet) -> Result<ScriptHooks, ScriptError> {
        Ok(ScriptHooks::default())
    }

    fn step(&mut self, _: &ScriptStep<'_>, _: &mut dyn LiveState) -> Result<(), ScriptError> {
        Ok(())
    }

    fn fault(&mut self, _: &ScriptStep<'_>, _: &mut dyn LiveState) -> Result<(), ScriptError> {
        Ok(())
    }

    fn enter(&mut self, _: &ScriptFrame<'_>) -> Result<(), ScriptError> {
        Ok(())
    }

    fn exit(&mut self, _: &FrameClose) -> Result<(), ScriptError> {
        Ok(())
    }

    fn result(
        &mut self,
        context: &ScriptContext<'_>,
        _: &mut dyn LiveState,
    ) -> Result<Box<RawValue>, ScriptError> {
        let output = alloy_primitives::hex::encode_prefixed(context.output);
        Ok(RawValue::from_string(json!(output).to_string()).unwrap())
    }
}

/// The engine counts the time of a message; a new one in each round would begin it anew.
#[test]
fn all_rounds_of_a_message_have_one_engine() {
    let stage = TokenFixture::new();
    let mut upstream = ExecutedUpstream::new(stage.dev.client.snapshot());
    // Without witnesses, the state comes in several rounds.
    upstream.without = vec!["rootlight_getWitness", "rootlight_getBlockWitness"];
    let engine = CountingEngine::default();
    let mut light = Light::with_scripts(Network::regtest(), upstream, Arc::new(engine.clone()));
    let owner = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
    let call = json!({ "from": owner, "to": stage.proxy, "data": balance_of(owner) });
    let script = "{ fault: function() {}, result: function() {} }";
    let before = engine.messages.load(Ordering::SeqCst);
    let (traced, rounds) = light.count("debug_traceCall", &json!([call, "latest", { "tracer": script }]));
    assert!(rounds > 1, "{rounds}");
    assert_eq!(engine.messages.load(Ordering::SeqCst) - before, 1);
    assert!(engine.begun.load(Ordering::SeqCst) > 1);
    assert_eq!(traced, light.call("eth_call", &json!([call, "latest"])));
}
