//! The program `rootlight` as a process.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use reqwest::header::{CONTENT_TYPE, ORIGIN};
use serde_json::{Value, json};

use super::{ProgramWatch, client};

/// A running program. Dropping it kills it.
pub struct Program {
    pub child: Child,
    /// The text before the ready line.
    pub banner: String,
    /// The rest of the ready line.
    pub listening: String,
    /// The output after the ready line.
    output: Option<BufReader<ChildStdout>>,
}

/// The program with these arguments, whatever log level the test itself has.
pub fn rootlight(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rootlight"));
    command.args(arguments).env_remove("RUST_LOG");
    command
}

impl Program {
    pub fn spawn(command: &mut Command) -> Self {
        let child = command.stdout(Stdio::piped()).spawn().unwrap();
        Self { child, banner: String::new(), listening: String::new(), output: None }
    }

    /// Starts a server and waits until it listens.
    pub fn start(command: &mut Command) -> Self {
        let mut program = Self::spawn(command);
        program.ready();
        program
    }

    /// Waits until the server listens.
    pub fn ready(&mut self) {
        let _watch = ProgramWatch::of(&self.child);
        let mut output = BufReader::new(self.child.stdout.take().unwrap());
        while self.listening.is_empty() {
            let mut line = String::new();
            assert!(output.read_line(&mut line).unwrap() > 0, "no ready line after:\n{}", self.banner);
            match line.strip_prefix("listening ") {
                Some(rest) => self.listening = rest.trim_end().to_owned(),
                None => self.banner += &line,
            }
        }
        self.output = Some(output);
    }

    pub fn url(&self) -> &str {
        self.listening.split(' ').next().unwrap()
    }

    /// Sends a message as a page of this origin.
    pub async fn send_from(&self, origin: Option<&str>, message: &Value) -> Value {
        let request = client().post(self.url()).header(CONTENT_TYPE, "application/json");
        let request = origin.into_iter().fold(request, |request, origin| request.header(ORIGIN, origin));
        let response = request.body(message.to_string()).send().await.unwrap();
        serde_json::from_str(&response.text().await.unwrap()).unwrap()
    }

    /// Makes a call; returns the whole response.
    pub async fn ask(&self, method: &str, params: Value) -> Value {
        self.send_from(None, &json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})).await
    }

    /// Makes a call; returns its result or its error.
    pub async fn call(&self, method: &str, params: Value) -> Result<Value, Value> {
        let mut answer = self.ask(method, params).await;
        match answer.get_mut("error") {
            Some(error) => Err(error.take()),
            None => Ok(answer["result"].take()),
        }
    }

    /// Sends the signal of this name.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Sends a signal and waits for the end; returns the exit code and the rest of both outputs.
    pub fn stop(mut self, signal: &str) -> (Option<i32>, String, String) {
        self.signal(signal);
        let _watch = ProgramWatch::of(&self.child);
        let (mut out, mut err) = (String::new(), String::new());
        if let Some(output) = &mut self.output {
            output.read_to_string(&mut out).unwrap();
        }
        if let Some(output) = &mut self.child.stderr {
            output.read_to_string(&mut err).unwrap();
        }
        (self.child.wait().unwrap().code(), out, err)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
