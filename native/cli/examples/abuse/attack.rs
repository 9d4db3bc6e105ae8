//! The abuses by name, and the process that runs one.
//!
//! The attacker prints the arguments of the server that it needs, reads the server's address, prepares, and
//! attacks when it is told to. At the end it prints its result.

use std::future::Future;
use std::io::{BufRead, BufReader, Lines, Write as _};
use std::net::SocketAddr;
use std::pin::Pin;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

use crate::{connections, memory, peers, refusals, runs, sources, upstream};

pub(crate) struct Words {
    pub(crate) text: String,
    /// Whether the abuse had its effect and other clients were served.
    pub(crate) good: bool,
}

/// Builds a result.
pub(crate) fn words(good: bool, text: String) -> Words {
    Words { text, good }
}

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
    /// The command that runs the attacker at its priority.
    pub(crate) priority: &'static [&'static str],
}

/// Attackers get only processor time that no other process uses (`chrt` of util-linux, sched(7)), because
/// attackers on other machines would take none from the server. Each abuse checks that it still has its
/// effect.
const IDLE: [&str; 3] = ["chrt", "--idle", "0"];

/// The priority of attackers that are upstreams: a client that waits for the server also waits for its
/// upstreams.
pub(crate) const UPSTREAM: [&str; 3] = ["nice", "-n", "10"];

/// The priority of the server's threads that do long work.
const AS_RUNS: [&str; 3] = ["nice", "-n", "5"];

/// The name of the control, which is no abuse.
pub(crate) const CONTROL: &str = "control";

/// A call that executes no code but waits for its turn like every call.
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"to":"0x00000000000000000000000000000000000000aa"},"latest"]}"#;

impl Attack {
    pub(crate) fn of_development(attack: fn(SocketAddr) -> Doing<Words>) -> Self {
        Self {
            server: || Box::pin(async { "dev".to_owned() }),
            prepare: |_| Box::pin(async {}),
            attack,
            question: CALL,
            priority: &IDLE,
        }
    }
}

/// Computes on as many threads as there are processors, without requests to the server. The additional
/// waiting time of clients is due to the operating system's scheduler.
fn control() -> Attack {
    let compute = |_: SocketAddr| -> Doing<Words> {
        Box::pin(async {
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            let until = std::time::Instant::now() + std::time::Duration::from_secs(12);
            let compute = move || {
                let mut rounds = 0_u64;
                while std::time::Instant::now() < until {
                    rounds = std::hint::black_box(rounds + 1);
                }
                rounds
            };
            let running: Vec<_> = (0..threads).map(|_| std::thread::spawn(compute)).collect();
            let rounds: u64 = running.into_iter().filter_map(|thread| thread.join().ok()).sum();
            words(rounds > 0, format!("{threads} threads computed, the server was left alone"))
        })
    };
    Attack { priority: &AS_RUNS, ..Attack::of_development(compute) }
}

/// Every abuse, in the order in which they run.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, Attack)> {
    let control = [(CONTROL, control())].into_iter();
    control
        .chain(memory::all())
        .chain(refusals::all())
        .chain(runs::all())
        .chain(connections::all())
        .chain(upstream::all())
        .chain(peers::all())
        .chain(sources::all())
}

pub(crate) fn find(name: &str) -> Option<Attack> {
    all().find(|(known, _)| *known == name).map(|(_, attack)| attack)
}

/// Runs as the attacker's process, which communicates in lines on stdin and stdout.
pub(crate) fn run(name: &str) -> ExitCode {
    let Some(attack) = find(name) else { return ExitCode::FAILURE };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut commands = std::io::stdin().lines().map_while(Result::ok);
    runtime.block_on(async {
        println!("{}\n{}", (attack.server)().await, attack.question);
        let address = commands.next().and_then(|line| line.parse().ok()).expect("the server's address");
        (attack.prepare)(address).await;
        println!("prepared");
        commands.next().expect("the word to go");
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
        let priority = find(name).map(|attack| attack.priority).unwrap_or(&IDLE);
        let mut child = Command::new(priority[0])
            .args(&priority[1..])
            .arg(program)
            .args(["--attack", name])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{} of the system is needed: {error}", priority[0]));
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
