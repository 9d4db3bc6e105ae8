//! Generates the JavaScript side of a WebAssembly module, for the `web` target of wasm-bindgen.
//!
//! It does what wasm-bindgen's command line tool does with the options that the package needs. That tool contains a test
//! runner with an HTTP server and a client too, and takes twice as long to compile.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use walrus::{FunctionBuilder, FunctionId, FunctionKind, Module};
use wasm_bindgen_cli_support::Bindgen;

/// Functions that are linked and never run, of which no compiler can know it: a module traps in them.
///
/// Serde describes unexpected floats with the first; `serde_json` describes them itself before that, and writes floats with
/// code of its own. What only this function calls is 5 kB, compressed.
const UNUSED: [&str; 1] = ["<f64 as core::fmt::Display>::fmt"];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [module, name, folder] = args.as_slice() else {
        eprintln!("usage: rootlight-bindgen MODULE NAME FOLDER (writes FOLDER/NAME.js and FOLDER/NAME_bg.wasm)");
        return ExitCode::from(2);
    };
    match generate(module, name, folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{module}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn generate(module: &str, name: &str, folder: &str) -> Result<(), Box<dyn std::error::Error>> {
    let mut linked = Module::from_file(module)?;
    let unused: Vec<FunctionId> =
        linked.funcs.iter().filter(|f| f.name.as_deref().is_some_and(is_unused)).map(|f| f.id()).collect();
    unused.into_iter().for_each(|function| empty(&mut linked, function));
    let mut bindgen = Bindgen::new();
    bindgen.input_bytes(name, linked.emit_wasm()).out_name(name).typescript(false);
    bindgen.remove_producers_section(true).omit_default_module_path(false);
    Ok(bindgen.web(true)?.generate(folder)?)
}

/// Whether a symbol names one of [`UNUSED`].
fn is_unused(symbol: &str) -> bool {
    let name = format!("{:#}", rustc_demangle::demangle(symbol));
    UNUSED.contains(&name.as_str())
}

/// Leaves a trap of a function.
fn empty(module: &mut Module, function: FunctionId) {
    let (params, results) = module.types.params_results(module.funcs.get(function).ty());
    let (params, results) = (params.to_vec(), results.to_vec());
    let mut builder = FunctionBuilder::new(&mut module.types, &params, &results);
    builder.func_body().unreachable();
    let args = params.into_iter().map(|param| module.locals.add(param)).collect();
    module.funcs.get_mut(function).kind = FunctionKind::Local(builder.local_func(args));
}
