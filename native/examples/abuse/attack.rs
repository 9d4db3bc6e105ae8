//! The abuses by name, and the process that runs one.
//!
//! The attacker prints the arguments of the server that it needs, reads the server's address, prepares, and
//! attacks when it is told to. At the end it prints its result.

use std::future::Future;
use std::io::{BufRead, BufReader, Lines, Write as _};
use std::net::SocketAddr;
use std::pin::Pin;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

use crate::{connections, memory, runs, upstream};

/// The result of an abuse.
pub(crate) struct Words {
    pub(crate) text: String,
    /// Whether the abuse had its effect and other clients were served.
    pub(crate) good: bool,
}

/// Builds a result.
pub(crate) fn words(good: bool, text: String) -> Words {
    Words { text, good }
}

/// The future of one step of an abuse.
pub(crate) type Doing<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// An abuse: the server that it needs, its preparation, and the attack itself.
#[derive(Clone, Copy)]
pub(crate) struct Attack {
    /// Starts what the server needs, for instance upstreams; returns the server's arguments.
    pub(crate) server: fn() -> Doing<String>,
    /// Prepares the server before it is observed, for instance with contracts.
    pub(crate) prepare: fn(SocketAddr) -> Doing<()>,
    pub(crate) attack: fn(SocketAddr) -> Doing<Words>,
    /// The request of the well-behaved client that is not brief.
    pub(crate) question: &'static str,
}

/// A call that executes no code but waits for its turn like every call.
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"to":"0x00000000000000000000000000000000000000aa"},"latest"]}"#;

impl Attack {
    /// An abuse of a development chain.
    pub(crate) fn of_development(attack: fn(SocketAddr) -> Doing<Words>) -> Self {
        Self {
            server: || Box::pin(async { "dev".to_owned() }),
            prepare: |_| Box::pin(async {}),
            attack,
            question: CALL,
        }
    }
}

/// Every abuse, in the order in which they run.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, Attack)> {
    memory::all().into_iter().chain(runs::all()).chain(connections::all()).chain(upstream::all())
}

/// Returns the abuse with this name.
pub(crate) fn find(name: &str) -> Option<Attack> {
    all().find(|(known, _)| *known == name).map(|(_, attack)| attack)
}

/// Runs as the attacker's process, which communicates in lines on stdin and stdout.
pub(crate) fn run(name: &str) -> ExitCode {
    let Some(attack) = find(name) else { return ExitCode::FAILURE };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut told = std::io::stdin().lines().map_while(Result::ok);
    runtime.block_on(async {
        println!("{}\n{}", (attack.server)().await, attack.question);
        let address = told.next().and_then(|line| line.parse().ok()).expect("the server's address");
        (attack.prepare)(address).await;
        println!("prepared");
        told.next().expect("the word to go");
        let Words { good, text } = (attack.attack)(address).await;
        upstream::end();
        println!("{good}\n{text}");
    });
    // Open sockets are closed when the process ends.
    ExitCode::SUCCESS
}

/// A running attacker, as the measuring process sees it.
pub(crate) struct Attacker {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    /// Arguments of the server that the attacker needs.
    pub(crate) server: String,
    /// The request of the well-behaved client.
    pub(crate) question: String,
}

impl Attacker {
    pub(crate) fn start(name: &str) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new("nice")
            .args(["-n", "10"])
            .arg(program)
            .args(["--attack", name])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the attacker starts");
        let input = child.stdin.take().expect("its input");
        let output = BufReader::new(child.stdout.take().expect("its output")).lines();
        let mut attacker = Self { child, input, output, server: String::new(), question: String::new() };
        attacker.server = attacker.line();
        attacker.question = attacker.line();
        attacker
    }

    fn line(&mut self) -> String {
        self.output.next().and_then(Result::ok).expect("a line of the attacker")
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("the attacker listens");
    }

    pub(crate) fn prepare(&mut self, address: SocketAddr) {
        self.tell(&address.to_string());
        assert_eq!(self.line(), "prepared");
    }

    pub(crate) fn attack(mut self) -> Words {
        self.tell("go");
        let good = self.line() == "true";
        Words { good, text: self.line() }
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
