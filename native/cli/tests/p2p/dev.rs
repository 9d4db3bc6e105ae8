//! A light client of a development chain that peers read.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{B256, U256, keccak256};
use rootlight::dev::Mining;
use rootlight::types::Block;
use rootlight_node::local::LocalOptions;
use rootlight_node::peer_server::LocalChain;
use rootlight_p2p::message::{Message, Push};
use rootlight_p2p::rlpx::{HandshakeSecrets, NodeKey, RANDOM_BYTES};
use rootlight_p2p::session::{Event, Session, SessionConfig};
use rootlight_server::service::Service as _;
use rootlight_upstream::p2p::PeerAddress;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::chain::serve;
use crate::common::{ask, dev_chain};
use crate::recorded::light;

/// Waits until the light client has the development chain's head.
pub(crate) async fn follows(light: &dyn rootlight_server::service::Service, head: &Value) {
    for _ in 0..600 {
        if ask(light, "eth_blockNumber", json!([])).await["result"] == *head {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the light client does not reach {head}: {:?}", light.health());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_light_client_reads_and_sends_by_peers_alone() {
    let node = dev_chain(Mining::Instant, LocalOptions::default());
    let (_server, address) = serve(Arc::new(LocalChain::new(node.clone()))).await;
    let accounts = ask(&*node, "eth_accounts", json!([])).await["result"].clone();
    let genesis = ask(&*node, "eth_getBlockByNumber", json!(["0x0", false])).await;
    let genesis = genesis["result"]["hash"].as_str().unwrap().parse().unwrap();
    // Stores 7 in cell 0, and returns it when called: PUSH1 7, PUSH1 0, SSTORE, then the code to run.
    let create = "0x6007600055600b8060106000396000f360005460005260206000f300";
    let sent = json!([{ "from": accounts[0], "data": create, "gas": "0x30000" }]);
    let hash = ask(&*node, "eth_sendTransaction", sent).await["result"].clone();
    let contract =
        ask(&*node, "eth_getTransactionReceipt", json!([hash])).await["result"]["contractAddress"].clone();
    ask(&*node, "evm_mine", json!([])).await;

    let light = light(&[address], genesis).await;
    assert!(light.is_synced(), "{:?}", light.health());
    let head = ask(&*node, "eth_blockNumber", json!([])).await["result"].clone();
    follows(&light, &head).await;
    for (method, params) in [
        ("eth_getBalance", json!([accounts[0], "latest"])),
        ("eth_getBalance", json!(["0x00000000000000000000000000000000000000ee", "latest"])),
        ("eth_getTransactionCount", json!([accounts[0], "latest"])),
        ("eth_getCode", json!([contract, "latest"])),
        ("eth_getStorageAt", json!([contract, "0x0", "latest"])),
        ("eth_call", json!([{ "to": contract }, "latest"])),
        ("eth_estimateGas", json!([{ "from": accounts[1], "to": contract }])),
        ("eth_getBlockByNumber", json!(["0x1", true])),
        ("eth_getProof", json!([contract, ["0x0", "0x1"], "0x1"])),
    ] {
        let (here, there) = (ask(&light, method, params.clone()).await, ask(&*node, method, params).await);
        assert_eq!((&here["result"], &here["level"]), (&there["result"], &Value::Null), "{method}: {here}");
        assert!(!here["result"].is_null(), "{method}: {here}");
    }

    // New blocks are told of, not only polled, and a transaction that was sent is mined.
    let signed = ask(
        &*node,
        "eth_signTransaction",
        json!([{
            "from": accounts[1], "to": accounts[2], "value": "0x7", "gas": "0x5208", "gasPrice": "0x3938700",
            "nonce": "0x0",
        }]),
    )
    .await;
    let raw = signed["result"].as_str().unwrap_or_else(|| panic!("{signed}")).to_owned();
    let sent = ask(&light, "eth_sendRawTransaction", json!([raw])).await;
    assert!(sent["result"].is_string(), "{sent}");
    for _ in 0..600 {
        let found = ask(&*node, "eth_getTransactionByHash", json!([sent["result"]])).await;
        if found["result"]["blockNumber"].is_string() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let head = ask(&*node, "eth_blockNumber", json!([])).await["result"].clone();
    follows(&light, &head).await;
    let nonce = ask(&light, "eth_getTransactionCount", json!([accounts[1], "latest"])).await;
    assert_eq!(nonce["result"], "0x1", "{nonce}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_gets_announced_blocks_by_hash_and_pending_transactions() {
    let node = dev_chain(Mining::Manual, LocalOptions::default());
    let (_server, address) = serve(Arc::new(LocalChain::new(node.clone()))).await;
    let genesis = ask(&*node, "eth_getBlockByNumber", json!(["0x0", false])).await;
    let genesis = genesis["result"]["hash"].as_str().unwrap().parse().unwrap();
    let mut peer = TestPeer::dial(&address, genesis).await;

    let accounts = ask(&*node, "eth_accounts", json!([])).await["result"].clone();
    let sent = json!([{ "from": accounts[0], "to": accounts[1], "value": "0x1", "gas": "0x5208" }]);
    let sent = ask(&*node, "eth_sendTransaction", sent).await["result"].clone();
    let hash = peer.next(|push| match push {
        Push::Transactions(items) => items.iter().next().map(|raw| format!("{:#x}", keccak256(raw))),
        _ => None,
    });
    assert_eq!(json!(hash.await), sent);

    ask(&*node, "evm_mine", json!([])).await;
    let announced = peer.next(|push| match push {
        Push::NewBlockHashes(blocks) => blocks.first().copied(),
        _ => None,
    });
    let announced = announced.await;
    assert_eq!(announced.number, 1);
    // Stock nodes ask for announced blocks without an id.
    peer.send(Push::GetBlock(announced.hash)).await;
    let block = peer.next(|push| match push {
        Push::Block(block) => Some(block.to_vec()),
        _ => None,
    });
    let network = rootlight::consensus::Network::regtest();
    let block = Block::decode(&block.await, &|number| network.header_shape(number)).unwrap();
    assert_eq!(block.header.seal().hash(), announced.hash);
}

/// A node of the network, as far as a test needs one.
pub(crate) struct TestPeer {
    pub(crate) stream: TcpStream,
    pub(crate) session: Session,
}

impl TestPeer {
    pub(crate) async fn dial(address: &PeerAddress, genesis: B256) -> Self {
        let key = NodeKey::from_bytes(&[7; 32]).unwrap();
        let config = SessionConfig::new("test", 7771, genesis, U256::from(1));
        let secrets = HandshakeSecrets::from_random(&[9; RANDOM_BYTES]);
        let session = Session::dial(&key, &address.id, &secrets, config, 0).unwrap();
        let stream = TcpStream::connect((address.host.as_str(), address.port)).await.unwrap();
        let mut peer = Self { stream, session };
        while !matches!(peer.event().await, Event::Ready(_)) {}
        peer
    }

    pub(crate) async fn event(&mut self) -> Event {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let event = self.session.next_event(0);
            self.stream.write_all(&self.session.take_output()).await.unwrap();
            if let Some(event) = event {
                return event;
            }
            let read = timeout(Duration::from_secs(30), self.stream.read(&mut buffer)).await;
            self.session.receive(&buffer[..read.unwrap().unwrap()], 0);
        }
    }

    async fn send(&mut self, push: Push<'_>) {
        self.session.send_message(&Message::Push(push).encode(), 0).unwrap();
        self.stream.write_all(&self.session.take_output()).await.unwrap();
    }

    /// The first message of the server from which `pick` takes something.
    async fn next<T>(&mut self, pick: impl Fn(Push<'_>) -> Option<T>) -> T {
        loop {
            let payload = match self.event().await {
                Event::Message(payload) => payload,
                Event::Closed(reason) => panic!("{reason}"),
                Event::Ready(_) => continue,
            };
            if let Message::Push(push) = Message::decode(&payload).unwrap()
                && let Some(picked) = pick(push)
            {
                return picked;
            }
        }
    }
}
