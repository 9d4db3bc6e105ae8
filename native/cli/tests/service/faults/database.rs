//! Faults of the database.

use serde_json::{Value, json};

use super::Striker;
use crate::chain::FINAL;
use crate::programs::Program;
use crate::running_service::number_at;
use crate::tally::Bad;

/// Blocks of the questions that only the index answers without reading headers.
const RANGE: u64 = 100;

impl Striker<'_> {
    pub(super) async fn restart_database(&mut self) {
        let (length, postgres) = (self.length, self.service.postgres.clone());
        let restart = move || {
            postgres.end("QUIT");
            std::thread::sleep(length);
            postgres.run();
        };
        tokio::task::spawn_blocking(restart).await.unwrap();
    }

    pub(super) async fn fill_database(&mut self) {
        self.service.postgres.fill_disk(true);
        self.last().await;
        self.service.postgres.fill_disk(false);
    }

    /// A front end alone reads the index of a replica that does not hear of new blocks. A front end that shares keys
    /// cannot use one.
    pub(super) async fn let_replica_lag(&mut self) {
        if self.service.replica.is_none() {
            let primary = self.service.postgres.clone();
            let replica = tokio::task::spawn_blocking(move || primary.replica()).await.unwrap();
            self.service.replica = Some(replica);
        }
        let replica = self.service.replica.as_ref().expect("just started");
        let database = self.service.index.rsplit('/').next().expect("an address has a database");
        let address = replica.address(database);
        self.replayed(&address).await;
        replica.execute(database, "SELECT pg_wal_replay_pause()").await;
        let before = number_at(&address, "SELECT max(number) FROM rootlight.blocks").await.unwrap();
        self.refuses_keys(&address).await;
        self.last().await;
        self.answers_from(&address).await;
        let after = number_at(&address, "SELECT max(number) FROM rootlight.blocks").await.unwrap();
        assert_eq!(before, after, "the replica lags");
        replica.execute(database, "SELECT pg_wal_replay_resume()").await;
    }

    /// Waits until a replica has the index.
    async fn replayed(&self, address: &str) {
        crate::servers::wait_until("the replica follows", || async {
            let last = number_at(address, "SELECT max(number) FROM rootlight.blocks").await;
            last.is_ok_and(|last| last > FINAL as i64)
        })
        .await;
    }

    async fn refuses_keys(&self, address: &str) {
        let mut command = self.service.serve();
        command.args(["--keys", "--http-port", "0"]).args(self.service.shared(address));
        let log = self.service.log("on-replica");
        let mut program = Program::start(command, &log);
        let status = program.ended().await;
        let said = program.said();
        assert!(status.code() == Some(1) && said.contains("read-only"), "{status}: {said}");
    }

    async fn answers_from(&self, address: &str) {
        let mut command = self.service.serve();
        let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        command.args(["--http-port", &port.to_string(), "--index", address]);
        let mut program = Program::start(command, &self.service.log("on-replica"));
        program.listening().await;
        let head = self.service.chain.head().number;
        let last = head - FINAL;
        let first = last.saturating_sub(RANGE).max(self.service.chain.oldest());
        let (from, to) = (format!("{first:#x}"), format!("{last:#x}"));
        let range = json!([{"address": self.service.chain.contract, "fromBlock": from, "toBlock": to}]);
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_getLogs", "params": range});
        let post = crate::common::client().post(format!("http://127.0.0.1:{port}/"));
        let post = post.header("content-type", "application/json").body(message.to_string());
        let answer: Value = serde_json::from_str(&post.send().await.unwrap().text().await.unwrap()).unwrap();
        let data = |logs: &Value| -> Vec<String> {
            logs.as_array()
                .into_iter()
                .flatten()
                .map(|log| format!("{} {}", log["blockHash"], log["data"]))
                .collect()
        };
        let expected = data(&self.service.chain.ask("eth_getLogs", range).await);
        if expected.is_empty() || data(&answer["result"]) != expected {
            let text = format!("logs of blocks {first} to {last} from a replica: {answer:.300}");
            self.service.tally.bad(Bad::Wrong, 1, &text);
        }
    }
}
