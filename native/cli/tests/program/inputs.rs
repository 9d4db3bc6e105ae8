//! Wrong inputs: each answer is one line that names the flag, says what is wrong and what to do, and repeats no secret.

use crate::common::run;

/// A password in addresses of these tests.
const SECRET: &str = "hunter22";

/// Checks the answer to wrong arguments: the exit code, and words of the last line on stderr.
#[track_caller]
fn refused(arguments: &[&str], code: i32, words: &[&str]) {
    let output = run(arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    let error = said.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    assert!(words.iter().all(|word| error.contains(word)), "{arguments:?}: {said}");
    assert!(!said.contains("os error") && !said.contains(SECRET), "{arguments:?}: {said}");
}

/// A folder with a file that is no file of this program, which only its owner can use.
fn folder() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "no\n").unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let file = file.to_str().unwrap().to_owned();
    (folder, file)
}

/// An address at which no program listens.
const DEAD: &str = "http://127.0.0.1:9";
/// An account.
const ACCOUNT: &str = "0xcd2a3d9f938e13cd947ec05abc7fe734df8dd826";

#[test]
fn a_missing_file_is_told_with_its_flag_and_path() {
    let none = "/nowhere/none";
    let words = |flag: &'static str| [flag, none, "no such file", "check the path"];
    for (arguments, code, flag) in [
        (&["dev", "--config", none][..], 2, "--config"),
        (&["dev", "--genesis", none], 2, "--genesis"),
        (&["dev", "--http-port", "0", "--tls-cert", none, "--tls-key", none], 1, "--tls-cert"),
        (&["dev", "--http-port", "0", "--api-keys", none], 1, "--api-keys"),
        (&["keys", "list", "--api-keys", none], 1, "--api-keys"),
        (&["keys", "create", "--api-keys", none], 1, "--api-keys"),
        (&["light", "--upstream", "replay:/nowhere/none"], 1, "--upstream"),
        (&["dev", "--fork", "replay:/nowhere/none"], 1, "--fork"),
        (&["follow", "--upstream", "replay:/nowhere/none"], 1, "--upstream"),
        (&["record", "--out", "/tmp/none", "--upstream", "replay:/nowhere/none"], 1, "--upstream"),
        (&["doctor", "--replay", none], 2, "--replay"),
        (&["verify", "header", none], 1, "none"),
        #[cfg(target_os = "linux")]
        (&["dev", "--http-port", "0", "--listen", "unix:/nowhere/none"], 1, "cannot listen on unix:"),
    ] {
        refused(arguments, code, &words(flag));
    }
    refused(&["light", "--network", none], 2, &["--network", none, "neither mainnet"]);
}

#[test]
fn a_file_in_the_place_of_a_folder_is_told_with_its_flag_and_path() {
    let (_folder, file) = folder();
    let file = file.as_str();
    for (arguments, flag) in [
        (&["dev", "--http-port", "0", "--data-dir", file][..], "--data-dir"),
        (&["follow", "--http-port", "0", "--upstream", DEAD, "--data-dir", file], "--data-dir"),
        (&["light", "--http-port", "0", "--upstream", DEAD, "--data-dir", file], "--data-dir"),
        (&["record", "--upstream", DEAD, "--out", file], "--out"),
        (&["man", "--out-dir", file], "--out-dir"),
    ] {
        refused(arguments, 1, &[flag, file, "a file is in the place of a folder"]);
    }
}

#[test]
fn a_folder_in_the_place_of_a_file_is_told_with_its_flag_and_path() {
    let (folder, _) = folder();
    let path = folder.path().to_str().unwrap();
    for (arguments, code, flag) in [
        (&["dev", "--config", path][..], 2, "--config"),
        (&["dev", "--genesis", path], 2, "--genesis"),
        (&["light", "--network", path], 2, "--network"),
        (&["dev", "--http-port", "0", "--tls-cert", path, "--tls-key", path], 1, "--tls-cert"),
        (&["keys", "list", "--api-keys", path], 1, "--api-keys"),
        (&["verify", "header", path], 1, ""),
    ] {
        refused(arguments, code, &[flag, path, "a folder, not a"]);
    }
}

/// The commands that take a recording, and the flag of each.
fn of_recordings() -> Vec<(Vec<&'static str>, &'static str)> {
    let commands = [
        (&["light", "--network", "regtest"][..], "--upstream"),
        (&["balance", ACCOUNT, "--network", "regtest"], "--upstream"),
        (&["doctor", "--network", "regtest"], "--upstream"),
        (&["follow", "--network", "regtest"], "--upstream"),
        (&["record", "--out", "/nowhere/none"], "--upstream"),
        (&["dev", "--fork", "testnet"], "--fork"),
        #[cfg(feature = "cluster")]
        (&["serve", "--network", "regtest"], "--backend"),
        #[cfg(feature = "cluster")]
        (&["index", "--network", "regtest", "--index", "postgres://127.0.0.1:9/x"], "--from"),
    ];
    commands.map(|(command, flag)| (command.to_vec(), flag)).into()
}

#[test]
fn a_file_that_is_no_recording_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let none = "it has no recorded request: give a file or folder that `rootlight record` has written";
    let files: [(&str, &[u8], &str); 6] = [
        ("empty.jsonl", b"", none),
        ("text", b"no\n", none),
        ("binary", &[0x7f, 0x45, 0x4c, 0x46, 0, 0xff, 0xfe, 10, 0], none),
        ("other.jsonl", b"{\"a\":1}\n{\"request\":1,\"response\":2}\n", none),
        ("text.gz", b"no\n", "no gzip file: write it again"),
        ("cut.gz", &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b], "it is damaged"),
    ];
    for (name, bytes, words) in files {
        let file = folder.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        let recording = format!("replay:{}", file.display());
        for (command, flag) in of_recordings() {
            let arguments = [&command[..], &[flag, &recording]].concat();
            refused(&arguments, 1, &[flag, name, words]);
        }
    }
}

/// A recording never changes, so that nothing is worth waiting for.
#[test]
fn a_recording_of_another_network_is_refused_at_the_start() {
    const RECORDING: &str = concat!("replay:", env!("CARGO_MANIFEST_DIR"), "/../recordings/regtest.jsonl.gz");
    for (mut arguments, flag) in of_recordings() {
        if matches!(arguments[0], "record" | "follow" | "doctor") {
            continue;
        }
        for argument in &mut arguments {
            *argument = if *argument == "regtest" { "testnet" } else { *argument };
        }
        arguments.extend([flag, RECORDING]);
        refused(&arguments, 1, &[flag, "regtest.jsonl.gz", "chain id 33, not 31: use an upstream of"]);
    }
}

#[test]
fn a_recording_without_block_0_is_refused_where_it_would_be_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let id = r#"{"request":{"id":1,"method":"eth_chainId","params":[]},"response":{"id":1,"result":"0x21"}}"#;
    std::fs::write(&file, id).unwrap();
    let recording = format!("replay:{}", file.display());
    for (command, flag) in of_recordings() {
        if matches!(command[0], "light" | "balance" | "serve" | "index") {
            let arguments = [&command[..], &[flag, &recording]].concat();
            refused(&arguments, 1, &["no upstream shows block 0", "a.jsonl"]);
        }
    }
}

/// The address may be a key, and is not repeated.
#[test]
fn the_flag_of_an_address_without_a_scheme_is_named() {
    let address = "user:hunter22@127.0.0.1:9";
    let folder = folder();
    let out = folder.0.path().join("out");
    let out = out.to_str().unwrap();
    for (arguments, flag) in [
        (&["dev", "--fork", "127.0.0.1:9"][..], "--fork takes mainnet, testnet, an http(s) or ws(s) URL"),
        (&["dev", "--fork", "mainnet", "--fork", "127.0.0.1:9"], "--fork takes mainnet"),
        (&["light", "--upstream", address], "--upstream takes"),
        (&["follow", "--upstream", address], "--upstream takes"),
        (&["record", "--out", out, "--upstream", address], "--upstream takes"),
        (&["doctor", "--upstream", address], "--upstream takes"),
        #[cfg(feature = "cluster")]
        (&["serve", "--backend", address], "--backend takes"),
        #[cfg(feature = "cluster")]
        (&["index", "--index", "postgres://127.0.0.1/x", "--from", address], "--from takes"),
    ] {
        refused(arguments, 2, &[flag, "has no scheme: put http:// or https:// before it"]);
    }
    for command in ["light", "doctor", "balance"] {
        let account: &[&str] = if command == "balance" { &[ACCOUNT] } else { &[] };
        let arguments = [&[command], account, &["--bitcoin", address]].concat();
        refused(&arguments, 2, &["--bitcoin: ", "docs/light.md names the forms"]);
    }
}

#[test]
fn a_fork_of_a_node_that_is_not_there_names_its_flag() {
    let words = ["--fork: ", DEAD, "no program listens there: start the node, or check its address"];
    refused(&["dev", "--http-port", "0", "--fork", DEAD], 1, &words);
    refused(&["dev", "--http-port", "0", "--fork", "testnet", "--fork", DEAD], 1, &words);
}

#[test]
fn a_wrong_checkpoint_is_answered_with_the_forms_that_are_taken() {
    for command in [&["light"][..], &["doctor"], &["balance", ACCOUNT]] {
        for (given, words) in [
            ("5", "takes window, work, built-in, none, or a block as NUMBER:HASH"),
            ("newest", "takes window, work, built-in, none, or a block as NUMBER:HASH"),
            ("five:0x12", "\"five\" is not a block number"),
            ("5:0x12", "\"0x12\" is not a block hash, which is 0x and 64 hexadecimal digits"),
        ] {
            let arguments = [command, &["--upstream", DEAD, "--checkpoint", given]].concat();
            refused(&arguments, 2, &["--checkpoint", words]);
        }
    }
}

#[cfg(feature = "cluster")]
#[test]
fn a_quorum_of_more_backends_than_are_named_is_refused() {
    refused(
        &["serve", "--backend", DEAD, "--unproven", "quorum:2"],
        2,
        &["needs 2 upstreams", "repeat --backend"],
    );
}

#[test]
fn the_error_of_a_file_that_is_not_json_says_so() {
    let (_folder, file) = folder();
    for flag in ["--genesis", "--network"] {
        let command = if flag == "--genesis" { "dev" } else { "light" };
        refused(&[command, flag, &file], 2, &[flag, &file, "not JSON: "]);
    }
}

#[test]
fn a_wrong_number_is_told_in_words_of_the_flag() {
    for (arguments, flag, words) in [
        (&["light", "--max-age", "-5"][..], "--max-age", "not a whole number from 0 on"),
        (&["dev", "--history", "-1"], "--history", "not a whole number from 0 on"),
        (&["dev", "--accounts", "-1"], "--accounts", "-1 is not in 0..="),
        (
            &["dev", "--genesis-time", "4611686018427387905"],
            "--genesis-time",
            "is not in 0..=4611686018427387904",
        ),
        (&["dev", "--http-port", "abc"], "--http-port", "not a whole number from 0 on"),
        (&["dev", "--http-port", ""], "--http-port", "it is not a number"),
        (&["keys", "list", "--limit", "99999999999999999999"], "--limit", "the number is too large"),
        (
            &["dev", "--metrics-listen", "here"],
            "--metrics-listen",
            "not ADDRESS:PORT, such as 127.0.0.1:4446",
        ),
        (&["balance", "-1"], "address -1", "an address begins with 0x"),
        (&["dev", "--block-time", "-1"], "--block-time", "give seconds, 0 for a block per transaction"),
        (
            &["record", "--upstream", DEAD, "--out", "o", "--account", "me"],
            "--account",
            "40 hexadecimal digits",
        ),
        (
            &["record", "--upstream", DEAD, "--out", "o", "--account", ACCOUNT, "--slot", "first"],
            "--slot",
            "at most 64 hexadecimal digits",
        ),
    ] {
        refused(arguments, 2, &[flag, words]);
    }
}

#[test]
fn a_text_that_is_no_url_is_told_with_an_example() {
    for address in ["http://", "http://127.0.0.1:99999", "wss://", "http://hunter22@", "http://[::1"] {
        let arguments = ["balance", ACCOUNT, "--upstream", address];
        refused(&arguments, 2, &["--upstream: upstream: not a URL: give SCHEME://HOST:PORT"]);
    }
}

/// A word that is no level would be a module, of which nothing is logged.
#[test]
fn a_word_that_is_no_level_of_log_lines_is_refused() {
    for level in ["loud", "", "info,rootlight", "rootlight=loud"] {
        refused(&["dev", "--http-port", "0", "--log-level", level], 2, &["--log-level", "give off, error,"]);
    }
}

/// All values but one would get lost.
#[test]
fn a_list_for_a_flag_that_takes_one_value_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    let path = file.to_str().unwrap();
    for text in ["http-port = [0, 0]", "[dev]\nhttp-port = [0, 0]"] {
        std::fs::write(&file, text).unwrap();
        refused(&["dev", "--config", path], 2, &["--config", path, "a list, but the flag takes one value"]);
    }
}

/// The error about a file that is no database, such as a full disk may leave, names its path and says what to do.
#[test]
fn a_file_that_is_no_database_is_told_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    std::fs::write(folder.path().join("chain.redb"), "no database").unwrap();
    let words = ["--data-dir: ", "chain.redb: it is damaged, or no database of this program: move it away"];
    refused(&["dev", "--http-port", "0", "--data-dir", path], 1, &words);
    refused(&["follow", "--network", "regtest", "--upstream", DEAD, "--data-dir", path], 1, &words);
    let (_folder, file) = self::folder();
    let words = ["--api-keys", file.as_str(), "it is damaged, or no database of this program: move it away"];
    refused(&["keys", "list", "--api-keys", &file], 1, &words);
}

/// A forgotten or wrong flag does not put the password of an address into a log.
#[test]
fn an_address_in_the_wrong_place_is_not_repeated() {
    let address = "https://user:hunter22@node.example/KEY";
    for arguments in [&[address][..], &["light", address], &["follow", address]] {
        refused(arguments, 2, &["an address stands alone: write its flag before it"]);
    }
    for flag in ["--metrics-listen", "--listen", "--peer", "--bootnode", "--unix-mode", "--sourcify"] {
        refused(&["light", flag, address], 2, &[flag]);
        refused(&["light", &format!("{flag}={address}")], 2, &[flag]);
    }
}

#[test]
fn an_origin_that_no_browser_sends_is_refused() {
    for origins in
        ["page.example", "https://a.example,b.example", "https://a.example/", "https://a.example/path"]
    {
        refused(&["dev", "--http-port", "0", "--cors", origins], 2, &["--cors", "SCHEME://HOST"]);
    }
}

#[cfg(feature = "cluster")]
#[test]
fn a_store_or_a_database_that_is_not_there_names_its_flag() {
    let (redis, postgres) = ("redis://me:hunter22@127.0.0.1:9", "postgres://me:hunter22@127.0.0.1:9/x");
    let absent = "no program listens there: start the server, or check its address";
    let serve = ["serve", "--http-port", "0", "--backend", DEAD, "--cluster", redis, "--index", postgres];
    refused(&serve, 1, &["--cluster: the store cannot be reached", absent]);
    refused(&["keys", "list", "--index", postgres], 1, &["--index: database", absent]);
}
