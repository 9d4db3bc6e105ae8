//! The command line as scripts use it: exit codes, outputs, configuration.

use crate::common;

use std::process::{Command, Stdio};

use common::{Program, ProgramWatch, rootlight, run};
use serde_json::{Value, json};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn help_and_version_go_to_stdout_with_exit_code_0() {
    for arguments in [&["--help"][..], &["record", "--help"], &["--version"]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(output.stderr.is_empty());
    }
    let help = text(&run(&["--help"]).stdout);
    assert!(help.contains("Examples:") && help.contains("Exit codes"), "{help}");
}

#[test]
fn usage_errors_go_to_stderr_with_exit_code_2() {
    for arguments in [
        &["nonsense"][..],
        &["record"],
        &["record", "--upstream", "ftp://x", "--out", "/tmp/x"],
        &["dev", "--call-gas-cap", "0"],
        &["record", "--upstream", "http://x", "--out", "/tmp/x", "--from", "5", "--to", "4"],
        &["--config", "/nowhere.toml", "record", "--upstream", "http://x", "--out", "/tmp/x"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty() && !output.stderr.is_empty());
    }
}

#[test]
fn a_start_by_work_is_refused_on_networks_where_work_proves_nothing() {
    let light = ["light", "--upstream", "http://127.0.0.1:9", "--checkpoint", "work"];
    for (more, words) in [
        (&["--network", "testnet"][..], "work is nearly free; give a checkpoint, NUMBER:HASH"),
        (&["--network", "regtest"], "its blocks may have any time"),
        (&["--min-work", "0"], "--checkpoint work needs a work floor: set --min-work above 0"),
    ] {
        let output = run(&[&light[..], more].concat());
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        let error = text(&output.stderr);
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn bitcoin_is_not_demanded_where_no_source_is_asked() {
    let light = ["light", "--network", "regtest", "--checkpoint", "none", "--upstream", "http://127.0.0.1:9"];
    for sources in [&[][..], &["--bitcoin", "off"]] {
        let output = run(&[&light[..], &["--min-bitcoin", "0"], sources].concat());
        assert_eq!(output.status.code(), Some(2), "{sources:?}");
        let error = text(&output.stderr);
        assert!(error.contains("--min-bitcoin needs a source"), "{error}");
    }
}

#[test]
fn failures_have_exit_code_1() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let output = run(&["record", "--upstream", "replay:/nowhere", "--out", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let expected = "error: --upstream: recording /nowhere: no such file";
    assert!(text(&output.stderr).starts_with(expected), "{}", text(&output.stderr));
    for command in [&["follow"][..], &["light", "--network", "regtest", "--checkpoint", "none"]] {
        let output = run(&[command, &["--upstream", "replay:/nowhere", "--http-port", "0"]].concat());
        assert_eq!(output.status.code(), Some(1), "{command:?}: {}", text(&output.stderr));
    }
}

fn recording(folder: &std::path::Path) {
    let word = |byte: &str| format!("0x{}", byte.repeat(32));
    let block = |n: u64| {
        json!({"number": format!("{n:#x}"), "hash": word(&format!("1{n}")), "stateRoot": word("00"), "uncles": [word("77")],
               "transactions": [{"hash": word(&format!("2{n}"))}]})
    };
    let mut lines = vec![];
    let mut add = |method: &str, params: Value, result: Value| {
        lines.push(json!({"request": {"id": 1, "method": method, "params": params}, "response": {"id": 1, "result": result}}).to_string());
    };
    for n in 0..3 {
        add("eth_getBlockByNumber", json!([format!("{n:#x}"), true]), block(n));
        add("rsk_getRawBlockHeaderByNumber", json!([format!("{n:#x}")]), json!("0xf8"));
        add("eth_getTransactionReceipt", json!([word(&format!("2{n}"))]), json!({"n": n}));
    }
    std::fs::write(folder.join("in.jsonl"), lines.join("\n")).unwrap();
}

#[test]
fn record_cuts_a_piece_out_of_a_recording() {
    let folder = tempfile::tempdir().unwrap();
    recording(folder.path());
    let (from, out) = (format!("replay:{}", folder.path().display()), folder.path().join("out"));
    for gzip in [false, true] {
        let mut arguments =
            vec!["record", "--upstream", &from, "--out", out.to_str().unwrap(), "--from", "1", "--to", "2"];
        if gzip {
            arguments.push("--gzip");
        }
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(
            text(&output.stdout).starts_with("recorded blocks 1 to 2: 6 responses"),
            "{}",
            text(&output.stdout)
        );
        assert!(text(&output.stderr).contains("blocks 2/2"));
        let mut names: Vec<String> = out
            .read_dir()
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        let end = if gzip { ".jsonl.gz" } else { ".jsonl" };
        assert_eq!(names, ["blocks", "headers", "receipts"].map(|name| format!("{name}{end}")));
        let replay = rootlight_upstream::replay::Replay::open(&out).unwrap();
        assert_eq!((replay.head(), replay.len()), (Some(2), 6));
        std::fs::remove_dir_all(&out).unwrap();
    }
}

#[test]
fn record_leaves_no_complete_file_when_it_fails() {
    let folder = tempfile::tempdir().unwrap();
    recording(folder.path());
    let (from, out) = (format!("replay:{}", folder.path().display()), folder.path().join("out"));
    let output = run(&["record", "--upstream", &from, "--out", out.to_str().unwrap(), "--to", "3"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("blocks 0 to 3: not a range of blocks up to the upstream's head, 2"),
        "{}",
        text(&output.stderr)
    );
    assert!(
        out.read_dir().map_or(true, |mut entries| entries.all(|e| !e.unwrap().path().ends_with(".jsonl")))
    );
}

#[test]
fn a_configuration_file_gives_defaults_that_flags_override() {
    let folder = tempfile::tempdir().unwrap();
    recording(folder.path());
    let (config, out) = (folder.path().join("rootlight.toml"), folder.path().join("out"));
    let run = |toml: String, more: &[&str]| {
        std::fs::write(&config, toml).unwrap();
        let mut arguments = vec!["record", "--config", config.to_str().unwrap()];
        arguments.extend(more);
        run(&arguments)
    };
    let upstream = format!("upstream = \"replay:{}\"\n", folder.path().display());
    let base = format!("silent = true\n{upstream}[record]\nout = \"{}\"\nto = 1\n", out.display());
    let output = run(base.clone(), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(output.stdout.is_empty(), "silent");
    assert_eq!(rootlight_upstream::replay::Replay::open(&out).unwrap().head(), Some(1));
    assert_eq!(run(base.clone(), &["--to", "2"]).status.code(), Some(0));
    assert_eq!(
        rootlight_upstream::replay::Replay::open(&out).unwrap().head(),
        Some(2),
        "flags take precedence"
    );
    for (broken, reason) in [
        ("nokey = 1\n", "line 1: unknown key"),
        ("\n[nocommand]\n", "line 2: no command"),
        ("a = [[]]\n", "line 1: a value is"),
        ("=", "line 1: not TOML"),
    ] {
        let output = run(format!("{broken}{base}"), &[]);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(reason), "{}", text(&output.stderr));
    }
}

#[test]
fn environment_variables_set_flags_and_override_the_file() {
    let folder = tempfile::tempdir().unwrap();
    recording(folder.path());
    let (config, out) = (folder.path().join("rootlight.toml"), folder.path().join("out"));
    std::fs::write(&config, "to = 0\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_rootlight"))
        .args(["record", "--from", "0"])
        .env("ROOTLIGHT_UPSTREAM", format!("replay:{}", folder.path().display()))
        .env("ROOTLIGHT_OUT", &out)
        .env("ROOTLIGHT_TO", "1")
        .env("ROOTLIGHT_GZIP", "true")
        .env("ROOTLIGHT_CONFIG", &config)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        text(&output.stdout).starts_with("recorded blocks 0 to 1:"),
        "the environment takes precedence over the file"
    );
    assert!(out.join("blocks.jsonl.gz").exists());
}

/// A mistyped URL may hold a password or key, which must not appear in messages or logs.
#[test]
fn errors_do_not_repeat_secrets_of_a_url() {
    for url in [
        "htps://user:hunter22@node.example/v3/0123456789abcdef",
        "user:hunter22@node.example/0123456789abcdef",
        "https://user:hunter22@:bad:/0123456789abcdef",
    ] {
        for command in ["light", "follow", "record"] {
            let mut arguments = vec![command, "--upstream", url];
            if command == "record" {
                arguments.extend(["--out", "/tmp/nowhere"]);
            }
            let output = run(&arguments);
            let said = text(&output.stdout) + &text(&output.stderr);
            assert!(output.status.code().is_some_and(|code| code > 0), "{arguments:?}");
            assert!(!said.contains("hunter22") && !said.contains("0123456789abcdef"), "{said}");
        }
    }
}

/// A file of a service holds passwords and keys, wherever one writes them.
#[test]
fn neither_help_nor_an_error_repeats_a_value_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("rootlight.toml");
    let file = config.to_str().unwrap();
    let good = [
        "upstream = \"https://me:hunter22@hidden.example/0123456789abcdef\"",
        "backend = [\"https://me:hunter22@hidden.example\"]",
        "cluster = [\"redis://:hunter22@store.example\"]",
        "index = \"postgres://me:hunter22@db.example/x\"",
        "from = \"https://me:hunter22@hidden.example\"",
        "node = \"https://me:hunter22@hidden.example\"",
        "mnemonic = \"hunter22 hunter22\"",
        "silent = true",
    ];
    std::fs::write(&config, good.join("\n")).unwrap();
    for command in
        [&[][..], &["light"], &["follow"], &["sidecar"], &["serve"], &["index"], &["record"], &["keys"]]
    {
        for flag in ["--help", "-h"] {
            let output = run(&[command, &["--config", file, flag]].concat());
            assert_eq!(output.status.code(), Some(0), "{command:?}: {}", text(&output.stderr));
            let help = text(&output.stdout);
            assert!(!help.contains("hunter22") && !help.contains("hidden.example"), "{help}");
        }
    }
    for (broken, line) in [
        ("\n\nupstream = https://me:hunter22@hidden.example", 3),
        ("\n\"https://me:hunter22@hidden.example\" = 1", 2),
        ("upstream = { hunter22 = 1 }", 1),
        ("[\"hunter22\"]", 1),
        ("accounts = \"hunter22\"", 0),
        ("[light]\npeer = \"hunter22\"", 0),
    ] {
        std::fs::write(&config, broken).unwrap();
        let command = if broken.starts_with("accounts") { "dev" } else { "light" };
        let output = run(&[command, "--config", file]);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{broken}: {said}");
        assert!(!said.contains("hunter22"), "{said}");
        assert!(line == 0 || said.contains(&format!("line {line}")), "{said}");
    }
}

#[cfg(unix)]
#[test]
fn pipes_and_devices_are_no_configuration_network_or_report() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for file in ["/dev/zero", pipe.to_str().unwrap()] {
        for (arguments, code) in [
            (&["--config", file, "methods"][..], 2),
            (&["light", "--network", file], 2),
            (&["dev", "--genesis", file], 2),
            (&["doctor", "--replay", file], 2),
        ] {
            let output = run(arguments);
            let said = text(&output.stderr);
            assert!(said.contains("not a regular file"), "{arguments:?}: {said}");
            assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_recording_that_is_not_a_regular_file_is_refused() {
    let output = run(&["light", "--network", "regtest", "--upstream", "replay:/dev/zero"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("neither a regular file nor a folder"), "{}", text(&output.stderr));
}

/// Each of three files is below the limit; together they exceed it.
#[test]
fn all_recordings_together_have_a_size_limit() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.jsonl.gz", "b.jsonl.gz", "c.jsonl.gz"] {
        let file = std::fs::File::create(folder.path().join(name)).unwrap();
        let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::best());
        let line = vec![b'\n'; 1 << 20];
        for _ in 0..80 {
            std::io::Write::write_all(&mut encoder, &line).unwrap();
        }
        encoder.finish().unwrap();
    }
    let recording = format!("replay:{}", folder.path().display());
    let output = run(&["light", "--network", "regtest", "--upstream", &recording]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("c.jsonl.gz") && said.contains("201326592 bytes"), "{said}");
}

/// Binding an address that other machines can reach prints a warning.
#[test]
fn listening_on_other_addresses_than_loopback_prints_a_warning() {
    for (host, loud) in [("0.0.0.0", true), ("127.0.0.1", false)] {
        let mut command = rootlight(&["dev", "--http-port", "0", "--host", host]);
        let (_, _, said) = Program::start(command.stderr(Stdio::piped())).stop("KILL");
        assert_eq!(said.contains("LISTENING ON"), loud, "{said}");
        assert_eq!(said.contains("--allow-host"), loud, "{said}");
    }
}

/// A reader that has enough closes the pipe. That is no failure of the command.
#[test]
fn a_reader_that_stops_early_is_no_failure() {
    for arguments in [
        &["methods"][..],
        &["methods", "--json"],
        &["completions", "bash"],
        &["man"],
        &["--help"],
        &["verify", "--help"],
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rootlight"))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let _watch = ProgramWatch::of(&child);
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
        assert!(output.stderr.is_empty(), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_output_that_cannot_be_written_is_a_failure() {
    for arguments in [
        &["methods"][..],
        &["completions", "bash"],
        &["man"],
        &["--help"],
        &["dev", "--help"],
        &["--version"],
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output =
            Command::new(env!("CARGO_BIN_EXE_rootlight")).args(arguments).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(
            text(&output.stderr).starts_with("error: output: no room is left: "),
            "{}",
            text(&output.stderr)
        );
    }
}
