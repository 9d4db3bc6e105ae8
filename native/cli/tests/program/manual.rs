//! Completion scripts and manual pages.

use crate::common;

use common::run;

/// Commands that have a page of their own.
const COMMANDS: [&str; 12] = [
    "balance",
    "dev",
    "follow",
    "light",
    "peers",
    "crawl",
    "doctor",
    "verify",
    "record",
    "methods",
    "completions",
    "man",
];

fn printed(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn completion_scripts_have_every_command_and_its_flags() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = printed(&["completions", shell]);
        for word in COMMANDS.iter().chain(&["min-depth", "block-time", "cors"]) {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn the_bash_script_completes_a_command() {
    let script = printed(&["completions", "bash"]);
    let ask = "COMP_WORDS=(rootlight li); COMP_CWORD=1; _rootlight rootlight li rootlight; echo \"${COMPREPLY[@]}\"";
    let bash = std::process::Command::new("bash").args(["-c", &format!("{script}\n{ask}")]).output();
    // Only a system without bash has nothing to complete.
    let Ok(output) = bash else { return println!("skipped: no bash") };
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), "light");
}

#[test]
fn an_unknown_shell_is_wrong_usage() {
    assert_eq!(run(&["completions", "dos"]).status.code(), Some(2));
}

#[test]
fn the_manual_page_has_commands_flags_and_exit_codes() {
    let page = printed(&["man"]);
    assert!(page.contains(".TH rootlight 1"), "{page}");
    for words in ["Exit codes", "rootlight\\-light(1)", "\\-\\-block\\-time", "\\-\\-config"] {
        assert!(page.contains(words), "{words}: {page}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("new/man1");
    assert_eq!(printed(&["man", "--out-dir", out.to_str().unwrap()]), "");
    assert!(out.join("rootlight.1").is_file());
    for command in COMMANDS {
        let page = std::fs::read_to_string(out.join(format!("rootlight-{command}.1"))).unwrap();
        assert!(page.contains("NAME"), "{command}");
    }
    let light = std::fs::read_to_string(out.join("rootlight-light.1")).unwrap();
    assert!(light.contains("\\-\\-min\\-depth"), "{light}");
}

#[test]
fn a_folder_for_manual_pages_that_cannot_be_made_is_a_failure() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let output = run(&["man", "--out-dir", file.path().join("x").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("x"));
}
