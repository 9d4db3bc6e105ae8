//! Several hosts that answer together: they show the same block, and a filter moves from one to another.

use crate::support;

use rootlight::consensus::Network;
use rootlight::light::Now;
use rootlight::rpc::Caller;
use serde_json::{Value, json};
use support::{
    dev::DevClient,
    light::{ExecutedUpstream, Light},
};

const ALICE: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
/// Deploys a contract that emits a log whenever it is called.
const LOGS: &str = "0x6005600c60003960056000f360006000a000";
const NOW: Now = Now { unix: 1_900_000_000, millis: 0 };

struct HostsFixture {
    dev: DevClient,
    hosts: [Light; 2],
    contract: Value,
}

impl HostsFixture {
    fn new() -> Self {
        let mut dev = DevClient::instant();
        let hash = dev.get("eth_sendTransaction", json!([{"from": ALICE, "data": LOGS, "gas": "0x30d40"}]));
        let contract = dev.get("eth_getTransactionReceipt", json!([hash]))["contractAddress"].clone();
        let host = || Light::new(Network::regtest(), ExecutedUpstream::new(dev.client.snapshot()));
        let hosts = [host(), host()];
        // As hosts that do not know each other's filters, they derive ids from secrets of their own.
        for (index, host) in hosts.iter().enumerate() {
            host.client.hide_filters(rootlight::types::B256::repeat_byte(index as u8 + 1));
        }
        Self { dev, hosts, contract }
    }

    fn block(&mut self) {
        self.dev.get("eth_sendTransaction", json!([{"from": ALICE, "to": self.contract, "gas": "0x186a0"}]));
    }

    fn follow(&mut self) {
        for host in &mut self.hosts {
            host.upstream.chain = self.dev.client.snapshot();
            host.sync();
        }
    }

    fn ask(&mut self, host: usize, method: &str, params: Value) -> Value {
        self.hosts[host].call(method, &params).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Lets a filter move from one host to the other.
    fn carry(&mut self, id: &Value, from: usize) {
        let number = u128::from_str_radix(&id.as_str().unwrap()[2..], 16).unwrap();
        let filter = self.hosts[from].client.export_filter(number).expect("a filter");
        let gone = self.hosts[from].call("eth_getFilterChanges", &json!([id])).unwrap_err();
        assert_eq!(gone["message"], "filter not found");
        self.hosts[1 - from].client.import_filter(number, filter, NOW);
    }
}

fn places(logs: &Value) -> Vec<(String, bool)> {
    let place = |log: &Value| (log["blockNumber"].as_str().unwrap().to_owned(), log["removed"] == true);
    logs.as_array().unwrap().iter().map(place).collect()
}

#[test]
fn a_filter_that_moves_reports_everything_once_and_what_its_other_host_reported_is_taken_back() {
    let mut fixture = HostsFixture::new();
    let wanted = json!([{"address": fixture.contract}]);
    let logs = fixture.ask(0, "eth_newFilter", wanted);
    let blocks = fixture.ask(0, "eth_newBlockFilter", json!([]));
    assert_eq!(fixture.ask(0, "eth_getFilterChanges", json!([logs])), json!([]));
    let before = fixture.dev.get("evm_snapshot", json!([]));
    fixture.block();
    fixture.block();
    fixture.follow();
    fixture.carry(&logs, 0);
    let answer = fixture.ask(1, "eth_getFilterChanges", json!([logs]));
    assert_eq!(places(&answer), [("0x2".into(), false), ("0x3".into(), false)]);
    fixture.carry(&logs, 1);
    assert_eq!(fixture.ask(0, "eth_getFilterChanges", json!([logs])), json!([]));

    // Another branch. The host that takes it back is not the one that reported it.
    fixture.dev.get("evm_revert", json!([before]));
    for _ in 0..3 {
        fixture.dev.get("evm_mine", json!([]));
    }
    fixture.follow();
    let taken_back = fixture.ask(0, "eth_getFilterChanges", json!([logs]));
    assert_eq!(places(&taken_back), [("0x2".into(), true), ("0x3".into(), true)]);
    fixture.carry(&blocks, 0);
    assert_eq!(fixture.ask(1, "eth_getFilterChanges", json!([blocks])).as_array().unwrap().len(), 3);
    assert_eq!(fixture.ask(1, "eth_uninstallFilter", json!([blocks])), true);
}

#[test]
fn a_poll_with_an_older_view_than_the_last_one_reports_nothing_and_loses_nothing() {
    let mut fixture = HostsFixture::new();
    let older = fixture.hosts[0].client.sync().chain().unwrap().snapshot();
    let logs = fixture.ask(0, "eth_newFilter", json!([{"address": fixture.contract}]));
    let blocks = fixture.ask(0, "eth_newBlockFilter", json!([]));
    assert_eq!(fixture.ask(0, "eth_getFilterChanges", json!([logs])), json!([]));
    fixture.block();
    fixture.follow();
    let counts = |fixture: &mut HostsFixture| {
        [&logs, &blocks]
            .map(|id| fixture.ask(0, "eth_getFilterChanges", json!([id])).as_array().unwrap().len())
    };
    assert_eq!(counts(&mut fixture), [1, 1]);
    fixture.hosts[0].client.show(Some(older));
    assert_eq!(counts(&mut fixture), [0, 0]);
    fixture.hosts[0].client.show(None);
    assert_eq!(counts(&mut fixture), [0, 0]);
    fixture.block();
    fixture.follow();
    assert_eq!(counts(&mut fixture), [1, 1]);
}

#[test]
fn a_filter_of_pending_transactions_reports_those_of_all_hosts_and_subscriptions_are_told_at_once() {
    let mut fixture = HostsFixture::new();
    let hash = |byte| rootlight::types::B256::repeat_byte(byte);
    let polled = fixture.ask(0, "eth_newPendingTransactionFilter", json!([]));
    let subscribed = fixture.ask(1, "eth_subscribe", json!(["newPendingTransactions"]));
    let number = u128::from_str_radix(&polled.as_str().unwrap()[2..], 16).unwrap();
    let mut filter = fixture.hosts[0].client.export_filter(number).unwrap();
    filter.pending.extend([hash(1), hash(2)]);
    fixture.hosts[1].client.import_filter(number, filter, NOW);
    // A page of another origin is an asker of its own, also at other hosts.
    let page = Caller::new(0, 5).with_subscriptions(9).from_foreign_page(Some("https://a.example".into()), 1);
    let answer = page.owner().asker.shared_id();
    fixture.hosts[1].caller = Some(std::sync::Arc::new(page));
    let of_page = fixture.ask(1, "eth_subscribe", json!(["newPendingTransactions"]));
    fixture.hosts[1].client.announce_sent(&[(hash(1), 0), (hash(3), 7), (hash(4), answer), (hash(2), 0)]);
    assert_eq!(fixture.ask(1, "eth_getFilterChanges", json!([of_page])), json!([hash(4)]));
    fixture.hosts[1].caller = None;
    for id in [polled, subscribed] {
        assert_eq!(fixture.ask(1, "eth_getFilterChanges", json!([id])), json!([hash(1), hash(2)]));
        assert_eq!(fixture.ask(1, "eth_getFilterChanges", json!([id])), json!([]));
    }
}

#[test]
fn a_filter_is_at_one_host_and_a_subscription_stays_with_its_connection() {
    let mut fixture = HostsFixture::new();
    let number = |id: &Value| u128::from_str_radix(&id.as_str().unwrap()[2..], 16).unwrap();
    let filter = fixture.ask(0, "eth_newBlockFilter", json!([]));
    assert!(fixture.hosts[0].client.export_filter(number(&filter)).is_some());
    assert!(fixture.hosts[0].client.export_filter(number(&filter)).is_none());
    let subscribed = fixture.ask(0, "eth_subscribe", json!(["newHeads"]));
    assert!(fixture.hosts[0].client.export_filter(number(&subscribed)).is_none());
    let heads = fixture.ask(0, "eth_getFilterChanges", json!([subscribed]));
    assert_eq!(heads, json!([]), "the subscription still exists");
}

#[test]
fn messages_see_the_block_that_is_shown_until_another_one_is() {
    let mut fixture = HostsFixture::new();
    let head = |fixture: &mut HostsFixture| fixture.ask(0, "eth_blockNumber", json!([]));
    assert_eq!(head(&mut fixture), "0x1");
    let filter = fixture.ask(0, "eth_newBlockFilter", json!([]));
    let count = |fixture: &mut HostsFixture, tag: &str| {
        fixture.ask(0, "eth_getTransactionCount", json!([ALICE, tag]))
    };
    let newest = |fixture: &HostsFixture| fixture.hosts[0].client.sync().chain().unwrap().snapshot();
    let first = newest(&fixture);
    fixture.hosts[0].client.show(Some(first.clone()));
    fixture.block();
    fixture.block();
    fixture.follow();
    assert_eq!((head(&mut fixture), count(&mut fixture, "latest")), (json!("0x1"), json!("0x1")));
    assert_eq!(fixture.ask(0, "eth_getBlockByNumber", json!(["0x2", false])), Value::Null);
    assert_eq!(fixture.ask(0, "eth_getFilterChanges", json!([filter])), json!([]));

    // The block below the newest one, of which this host made no snapshot while it was the head.
    let all = newest(&fixture);
    let second = all.ending_at(&all.hash_at(2).unwrap()).unwrap();
    assert_eq!((second.head().number, second.hash_at(3)), (2, None));
    assert_eq!(second.depth(1, &second.hash_at(1).unwrap()), Some(1));
    fixture.hosts[0].client.show(Some(second));
    assert_eq!((head(&mut fixture), count(&mut fixture, "latest")), (json!("0x2"), json!("0x2")));
    assert_eq!(fixture.ask(0, "eth_getFilterChanges", json!([filter])).as_array().unwrap().len(), 1);
    fixture.hosts[0].client.show(None);
    assert_eq!((head(&mut fixture), count(&mut fixture, "latest")), (json!("0x3"), json!("0x3")));
    assert_eq!(fixture.ask(0, "eth_getFilterChanges", json!([filter])).as_array().unwrap().len(), 1);
    assert!(first.ending_at(&all.head().hash()).is_none(), "a later block");
}
