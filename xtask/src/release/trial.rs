//! Tries the files of a release: the program in a root folder without any other file, as in a container `FROM scratch`, and the npm package in an
//! empty folder.

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use super::archive::npm_file;
use super::files::{VERSION, folder};
use super::program::ReleaseTarget;
use crate::shell::{Cmd, StepOutput, ask};
use crate::steps::StepResult;

/// The user that `Containerfile` names.
const USER: &str = "65532:65532";

/// Longest wait for an answer of the development chain.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// The program's log line when it finds no certificate authorities (`native/upstream/src/tls.rs`).
const COMPILED_IN: &str = "no certificate authorities: those compiled in are used";

/// Runs the program three times: its version, a development chain, and a connection with TLS.
pub(super) fn run(_: &mut StepOutput, target: &ReleaseTarget) -> StepResult {
    let Some(emulator) = target.emulator() else {
        return Ok("NOT TRIED: this machine cannot run the program; install qemu-user-static".into());
    };
    let trial_root = TrialRoot::prepare(target, emulator)?;
    let version = text(&trial_root.output(&["--version"])?.stdout);
    if version.trim() != format!("rootlight {}", VERSION) {
        return Err(format!("--version printed '{version}'"));
    }
    let chain = trial_root.chain_id()?;
    if !chain.contains(r#""result":"0x21""#) {
        return Err(format!("eth_chainId was answered with '{chain}'"));
    }
    trial_root.tls()?;
    let how = if trial_root.emulator.is_some() { ", emulated" } else { "" };
    Ok(format!("version, chain and TLS in an empty root folder{how}"))
}

/// The script that tries the npm package in an empty folder: loads each entry point, and gets an answer from
/// a module.
const PACKAGE: &str = "
await import('rootlight');
await import('rootlight/verify.js').then((verify) => verify.load());
const { createDevChain } = await import('rootlight/dev.js');
const chain = await createDevChain();
console.log('chain', await chain.request({ method: 'eth_chainId' }));
process.exit();
";

/// Unpacks the npm package like npm, and runs the script.
pub(super) fn npm(log: &mut StepOutput) -> StepResult {
    let folder = folder().join("trial/npm");
    let package = folder.join("node_modules/rootlight");
    fs::create_dir_all(&package).map_err(|e| format!("{}: {e}", package.display()))?;
    let unpack = Cmd::new("tar --extract --gzip --strip-components=1 --file").arg(npm_file());
    log.run(unpack.inside(&package))?;
    let output =
        log.run(Cmd::new("node --input-type=module --eval").arg(PACKAGE).inside(&folder).limit(60))?;
    if output.contains("chain 0x21") { Ok("all entry points".into()) } else { Err(output) }
}

/// The root folder of the trial.
struct TrialRoot {
    folder: PathBuf,
    /// Name of the emulator in this folder.
    emulator: Option<String>,
}

impl TrialRoot {
    /// Makes the folder, with the program and the emulator in it.
    fn prepare(target: &ReleaseTarget, emulator: Option<PathBuf>) -> Result<Self, String> {
        let folder = folder().join("trial").join(target.triple);
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let copy = |from: &Path, name: &str| {
            fs::copy(from, folder.join(name))
                .map(|_| name.to_owned())
                .map_err(|e| format!("{}: {e}", from.display()))
        };
        copy(&target.path(), "rootlight")?;
        // As the volume of a container: the program's user may write here.
        let data = folder.join("data");
        let made = fs::create_dir_all(&data)
            .and_then(|()| fs::set_permissions(&data, Permissions::from_mode(0o777)));
        made.map_err(|e| format!("{}: {e}", data.display()))?;
        let emulator = emulator.map(|path| copy(&path, "emulator")).transpose()?;
        Ok(Self { folder, emulator })
    }

    /// Returns the command that runs the program in this root folder, without environment variables and
    /// without administrator rights.
    fn command(&self, args: &[&str]) -> Command {
        let administrator = ask("id", &["-u"]).as_deref() == Some("0");
        let mut command = if administrator {
            let mut command = Command::new("chroot");
            command.arg(format!("--userspec={USER}")).arg(&self.folder);
            command
        } else {
            let mut command = Command::new("unshare");
            command.arg("--map-root-user").arg(format!("--root={}", self.folder.display()));
            command
        };
        if let Some(emulator) = &self.emulator {
            command.arg(format!("/{emulator}"));
        }
        command
            .arg("/rootlight")
            .args(args)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    fn output(&self, args: &[&str]) -> Result<Output, String> {
        self.command(args).output().map_err(|e| format!("{args:?}: {e}"))
    }

    /// Starts a development chain, asks for its chain id over HTTP, and ends it.
    fn chain_id(&self) -> Result<String, String> {
        let mut command = self.command(&["dev", "--http-port", "0"]);
        let started = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = started.map_err(|e| format!("dev: {e}"))?;
        let lines = child.stdout.take().map(|output| BufReader::new(output).lines());
        let ready = lines.and_then(|mut lines| lines.find_map(|line| listening(&line.ok()?)));
        let answer = match &ready {
            Some(address) => post(address).map_err(|e| format!("{address}: {e}")),
            None => Err("the development chain printed no address".into()),
        };
        // The chain does not end by itself.
        let _ = child.kill();
        let _ = child.wait();
        answer
    }

    /// Opens a TLS connection to a port where no program listens. The program loads its certificate authorities first, and without any it would
    /// fail before it connects.
    fn tls(&self) -> Result<(), String> {
        let args =
            ["record", "--upstream", "https://127.0.0.1:1", "--out", "/data/out", "--from", "0", "--to", "0"];
        let output =
            self.command(&args).env("RUST_LOG", "info").output().map_err(|e| format!("record: {e}"))?;
        let said = text(&output.stderr);
        if said.contains(COMPILED_IN) && said.contains("not reachable") {
            return Ok(());
        }
        Err(format!("a connection with TLS ended with: {said}"))
    }
}

/// Returns the address from the line that the program prints when it is ready.
fn listening(line: &str) -> Option<String> {
    let url = line.strip_prefix("listening ")?.split(' ').next()?;
    Some(url.strip_prefix("http://")?.to_owned())
}

/// Requests the chain id; returns the response.
fn post(address: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}"#;
    let length = body.len();
    write!(
        stream,
        "POST / HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    Ok(response)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_has_the_address() {
        assert_eq!(
            listening("listening http://127.0.0.1:99 ws://127.0.0.1:99").as_deref(),
            Some("127.0.0.1:99")
        );
        assert_eq!(listening("Accounts"), None);
    }

    #[test]
    fn the_program_logs_what_the_trial_expects() {
        let source = crate::shell::root().join("native/upstream/src/tls.rs");
        let source = fs::read_to_string(source).expect("the file can be read");
        assert!(source.contains(COMPILED_IN));
    }

    #[test]
    fn the_container_has_the_same_user_and_the_server_s_ports() {
        let file =
            fs::read_to_string(crate::shell::root().join("Containerfile")).expect("the file can be read");
        for line in [
            "FROM scratch",
            &format!("USER {USER}"),
            &format!("COPY --chown={USER} data /data"),
            "EXPOSE 4444 4445",
        ] {
            assert!(file.lines().any(|known| known == line), "{line}");
        }
    }
}
