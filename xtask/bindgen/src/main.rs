//! Generates the JavaScript side of a WebAssembly module, for the `web` target of wasm-bindgen. `xtask/src/wasm.rs` runs this program.
//!
//! The output equals that of wasm-bindgen's command line tool with the options that the package needs. The tool also contains a test
//! runner with an HTTP server and a client, and takes twice as long to compile.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [module, name, folder] = args.as_slice() else {
        eprintln!("usage: rootlight-bindgen MODULE NAME FOLDER (writes FOLDER/NAME.js and FOLDER/NAME_bg.wasm)");
        return ExitCode::from(2);
    };
    let mut bindgen = Bindgen::new();
    bindgen.input_path(module).out_name(name).typescript(false);
    bindgen.remove_producers_section(true).omit_default_module_path(false);
    match bindgen.web(true).and_then(|bindgen| bindgen.generate(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{module}: {error:#}");
            ExitCode::FAILURE
        }
    }
}
