//! `rootlight keys` on the keys of a service on many machines.

use std::process::{Command, Output};

use rootlight_server::keys::{KeyLookup as _, KeyText};
use serde_json::Value;

use crate::servers::{Servers, cluster, wait_until};
use crate::setup::database;
use rootlight_cluster::keys::ClusterAccess;
use rootlight_index::testkit::postgres;

fn keys(arguments: &[&str], flags: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rootlight"));
    command.arg("keys").args(arguments).args(flags).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn refusal(output: &Output) -> (i32, String) {
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_work_as_on_a_file() {
    let (Some(servers), Some(postgres)) = (cluster(), postgres()) else { return };
    let address = postgres.database().await;
    let urls = servers.urls();
    let flags: Vec<&str> =
        urls.iter().flat_map(|url| ["--cluster", url]).chain(["--index", &address]).collect();
    assert_eq!(text(&keys(&["list", "--json"], &flags)).trim(), "[]");
    let made = text(&keys(&["create", "--name", "shop", "--rps", "20", "--per-day", "25000"], &flags));
    let key = KeyText::parse(made.trim()).unwrap();
    let access = ClusterAccess::open(&database(&address), servers.connect("rootlight").await).await.unwrap();
    let found = access.find(key.id()).await.unwrap().unwrap();
    assert!(key.has(Some(&found.hash)) && !key.reveal().contains(&found.hash.to_string()));
    assert_eq!((found.name.as_str(), found.rules.per_second), ("shop", Some(20)));

    let other = text(&keys(&["create"], &flags));
    let listed = text(&keys(&["list"], &flags));
    assert!(
        listed.contains("limits: 20 a second, 40 at once; 25000 a day") && listed.contains("limits: none")
    );
    let json: Value = serde_json::from_str(&text(&keys(&["list", "--json"], &flags))).unwrap();
    assert_eq!((json.as_array().unwrap().len(), &json[0]["name"]), (2, &"shop".into()));
    let json = text(&keys(&["list", "--json", "--limit", "1", "--after", key.id()], &flags));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["id"], other.trim().split_once('.').unwrap().0);
    assert_eq!(json.as_array().unwrap().len(), 1);

    let changed = text(&keys(&["limit", key.id(), "--rps", "0", "--methods", "eth_*"], &flags));
    assert!(changed.contains("limits: 25000 a day; methods eth_*"), "{changed}");
    assert!(text(&keys(&["revoke", key.id()], &flags)).contains("revoked at"));
    wait_until("the revocation", || async {
        access.find(key.id()).await.unwrap().unwrap().revoked.is_some()
    })
    .await;

    let (code, text) = refusal(&keys(&["limit", key.id(), "--rps", "1"], &flags));
    assert!(code == 1 && text.contains("is revoked"), "{text}");
    let (code, text) = refusal(&keys(&["revoke", &key.reveal()], &flags));
    assert!(code == 1 && text.contains("there is no key") && !text.contains(&key.reveal()[9..]), "{text}");
    let (code, text) = refusal(&keys(&["create", "--methods", "eth_nothing"], &flags));
    assert!(code == 2 && text.contains("methods"), "{text}");
    let (code, text) = refusal(&keys(&["list"], &["--cluster", "redis://localhost"]));
    assert!(code == 2 && text.contains("--index"), "{text}");
    let (code, text) = refusal(&keys(&["list"], &["--index", "mysql://me:secret@host/x"]));
    assert!(code == 2 && text.contains("postgres://USER") && !text.contains("secret"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_can_be_revoked_while_the_store_is_away() {
    let (Some(servers), Some(postgres)) = (Servers::single(&[]), postgres()) else { return };
    let address = postgres.database().await;
    let url = &servers.urls()[0];
    let flags = ["--cluster", url, "--index", &address];
    let key = KeyText::parse(text(&keys(&["create"], &flags)).trim()).unwrap();
    let store = servers.connect("rootlight").await;
    let access = ClusterAccess::open(&database(&address), store).await.unwrap();
    assert!(access.find(key.id()).await.unwrap().unwrap().revoked.is_none());
    servers.kill(0);
    assert!(text(&keys(&["revoke", key.id()], &flags)).contains("revoked at"));
    wait_until("the revocation", || async {
        access.find(key.id()).await.unwrap().unwrap().revoked.is_some()
    })
    .await;
}
