//! A light client that spreads its requests over equal upstreams, and asks a second one when the first is slow.

use crate::common::{self, ask};

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use rootlight::consensus::Network;
use rootlight::dev::Mining;
use rootlight::light::{SyncOptions, UpstreamRequest};
use rootlight_node::light::{LightOptions, LightService, start_checkpoint};
use rootlight_node::local::{LocalOptions, LocalService};
use rootlight_server::service::Service;
use rootlight_upstream::{ReservedResults, Upstream, UpstreamResult, unreserved};
use serde_json::json;
use serde_json::value::RawValue;

/// Accounts that are asked about: more rounds than the budget allows to send twice in vain.
const ACCOUNTS: u32 = 60;

const ALICE: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";

/// A chain of this process as an upstream that can be slow with proofs, or give false ones.
struct SlowBackend {
    chain: Arc<LocalService>,
    name: &'static str,
    /// Time that a proof takes, in milliseconds; [`u64::MAX`] for ever.
    delay: AtomicU64,
    lies: AtomicBool,
    /// Whether it never answers a transaction.
    swallows: AtomicBool,
    proofs: AtomicUsize,
}

fn address(account: u32) -> String {
    format!("{:#042x}", 0x0100_0000 + account)
}

impl SlowBackend {
    async fn one(&self, request: UpstreamRequest) -> UpstreamResult {
        let is_proof = request.method == "eth_getProof";
        if is_proof {
            self.proofs.fetch_add(1, Ordering::SeqCst);
            match self.delay.load(Ordering::SeqCst) {
                u64::MAX => std::future::pending().await,
                delay => tokio::time::sleep(Duration::from_millis(delay)).await,
            }
        }
        if request.sends() && self.swallows.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        let mut text = common::answered(&*self.chain, request).await?.get().to_owned();
        if is_proof && self.lies.load(Ordering::SeqCst) {
            let node = text.find(r#""accountProof":["0x"#).unwrap() + 40;
            let other = if text.as_bytes()[node] == b'0' { "1" } else { "0" };
            text.replace_range(node..=node, other);
        }
        Ok(RawValue::from_string(text).unwrap())
    }
}

impl Upstream for SlowBackend {
    fn request_reserved(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        Box::pin(unreserved(async move {
            futures::future::join_all(requests.into_iter().map(|request| self.one(request))).await
        }))
    }

    fn name(&self) -> &str {
        self.name
    }
}

struct SpreadFixture {
    chain: Arc<LocalService>,
    backends: [Arc<SlowBackend>; 2],
    light: LightService,
}

impl SpreadFixture {
    async fn new() -> Self {
        let chain = common::dev_chain(Mining::Instant, LocalOptions::default());
        let backend = |name| {
            let (chain, proofs) = (chain.clone(), AtomicUsize::new(0));
            let (lies, swallows) = (false.into(), false.into());
            Arc::new(SlowBackend { chain, name, delay: AtomicU64::new(0), lies, swallows, proofs })
        };
        let backends = ["first", "second"].map(backend);
        for account in 0..2 * ACCOUNTS {
            ask(&*chain, "anvil_setBalance", json!([address(account), "0x1"])).await;
        }
        ask(&*chain, "evm_mine", json!([])).await;
        let genesis = ask(&*chain, "eth_getBlockByNumber", json!(["0x0", false])).await;
        let hash = genesis["result"]["hash"].as_str().unwrap();
        let network = Network::regtest();
        let start = start_checkpoint(Some(&format!("0:{hash}")), &network).unwrap();
        let options = LightOptions {
            spread: true,
            sync: SyncOptions { poll: 50, ..SyncOptions::default() },
            message_timeout: Duration::from_secs(30),
            ..LightOptions::default()
        };
        let upstreams = backends.iter().map(|backend| backend.clone() as Arc<dyn Upstream>).collect();
        let light = LightService::start(network, start, upstreams, options);
        light.settled(Duration::from_secs(60)).await;
        Self { chain, backends, light }
    }

    /// Asks about accounts one after another, most of which need a proof of their own.
    async fn ask_all(&self, accounts: Range<u32>) {
        for account in accounts {
            let proven = ask(&self.light, "eth_getBalance", json!([address(account), "latest"])).await;
            assert_eq!(proven["result"], "0x1", "{proven}");
            // The turn depends on the time.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn proofs(&self) -> [usize; 2] {
        [0, 1].map(|index| self.backends[index].proofs.load(Ordering::SeqCst))
    }

    fn demerits(&self) -> [u32; 2] {
        let upstreams = self.light.chain_status().upstreams;
        [0, 1].map(|index| upstreams[index].demerits)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_upstreams_take_turns() {
    let fixture = SpreadFixture::new().await;
    fixture.ask_all(0..ACCOUNTS).await;
    let [first, second] = fixture.proofs();
    assert!(first >= 5 && second >= 5, "{first} and {second}");
    assert_eq!(fixture.demerits(), [0, 0]);
}

/// Without a second upstream each message to the first would fail after its time.
#[tokio::test(flavor = "multi_thread")]
async fn messages_are_answered_while_one_upstream_hangs() {
    let fixture = SpreadFixture::new().await;
    fixture.backends[0].delay.store(u64::MAX, Ordering::SeqCst);
    fixture.ask_all(0..ACCOUNTS).await;
    let [hanging, other] = fixture.proofs();
    assert!(hanging >= 5 && other >= 10, "{hanging} and {other}");
}

/// Otherwise half of all messages would wait for its usual time, which grows as it hangs.
#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_hangs_loses_its_turns() {
    let fixture = SpreadFixture::new().await;
    fixture.backends[0].delay.store(u64::MAX, Ordering::SeqCst);
    fixture.ask_all(0..ACCOUNTS).await;
    let before = fixture.proofs();
    fixture.ask_all(ACCOUNTS..2 * ACCOUNTS).await;
    let after = fixture.proofs();
    let [hanging, other] = [0, 1].map(|index| after[index] - before[index]);
    // The hanging upstream is still asked when the other one is slow for once.
    assert!(other >= 10 && hanging * 3 <= other, "{hanging} and {other}");
}

/// Each of these would fail at the time limit of the message. The other one could lie, so no backend is blamed.
#[tokio::test(flavor = "multi_thread")]
async fn transactions_are_sent_while_one_upstream_does_not_respond() {
    let fixture = SpreadFixture::new().await;
    fixture.backends[0].swallows.store(true, Ordering::SeqCst);
    for nonce in 0..4 {
        let fields = json!([{"from": ALICE, "to": ALICE, "value": "0x1", "gas": "0x5208", "gasPrice": "0x3b9aca00", "nonce": format!("{nonce:#x}")}]);
        let mut signed = ask(&*fixture.chain, "eth_signTransaction", fields).await["result"].take();
        let raw = if signed["raw"].is_string() { signed["raw"].take() } else { signed };
        let sent = ask(&fixture.light, "eth_sendRawTransaction", json!([raw])).await;
        assert!(sent["result"].is_string(), "{sent}");
    }
    assert_eq!(fixture.demerits(), [0, 0]);
}

/// The slow upstream is asked when the spare one is refuted, and only the liar is blamed.
#[tokio::test(flavor = "multi_thread")]
async fn a_false_answer_of_the_spare_is_its_own() {
    let fixture = SpreadFixture::new().await;
    fixture.backends[0].delay.store(400, Ordering::SeqCst);
    fixture.backends[1].lies.store(true, Ordering::SeqCst);
    // The liar is the spare of some of these, and asked first by the others, until it rests.
    for account in 0..6 {
        let proven = ask(&fixture.light, "eth_getBalance", json!([address(account), "latest"])).await;
        assert_eq!(proven["result"], "0x1", "{proven}");
    }
    let [slow, liar] = fixture.demerits();
    assert!(slow == 0 && liar > 0, "{slow} and {liar}");
}
