//! The abuses by name, and the process that commits one.
//!
//! The attacker writes the arguments of the server that it wants, is told the server's address, prepares, and attacks when
//! it is told to. It ends with a line of what came of it.

use std::future::Future;
use std::io::{BufRead, BufReader, Lines, Write as _};
use std::net::SocketAddr;
use std::pin::Pin;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

use crate::{connections, memory, runs, upstream};

/// What an abuse came to.
pub(crate) struct Words {
    pub(crate) text: String,
    /// Whether it did what it claims to do, and others were served meanwhile.
    pub(crate) good: bool,
}

/// An outcome.
pub(crate) fn words(good: bool, text: String) -> Words {
    Words { text, good }
}

/// A step of an abuse that is waited for.
pub(crate) type Doing<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// An abuse: the server that it wants, what it does before the server is observed, and the abuse itself.
#[derive(Clone, Copy)]
pub(crate) struct Attack {
    /// Starts what the server needs; gives the server's arguments.
    pub(crate) server: fn() -> Doing<String>,
    /// Prepares the server, for instance with contracts.
    pub(crate) prepare: fn(SocketAddr) -> Doing<()>,
    pub(crate) attack: fn(SocketAddr) -> Doing<Words>,
    /// A question of the well-behaved client that is not brief.
    pub(crate) question: &'static str,
}

/// Runs no code for long, but waits for its turn as all calls do.
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

/// The abuse of this name.
pub(crate) fn find(name: &str) -> Option<Attack> {
    all().find(|(known, _)| *known == name).map(|(_, attack)| attack)
}

/// The attacker's process: what it says and is told are lines.
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
    // Sockets that are still open end with the process.
    ExitCode::SUCCESS
}

/// A running attacker, as the measuring process sees it.
pub(crate) struct Attacker {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    /// Arguments of the server that it wants.
    pub(crate) server: String,
    /// The question of the well-behaved client.
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
