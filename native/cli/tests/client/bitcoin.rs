//! Sources of Bitcoin's chain: against the servers of a development chain's Bitcoin chain, and against hostile ones.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use rootlight::consensus::bitcoin::BitcoinHeader;
use rootlight::consensus::mining::committed_hash;
use rootlight::dev::{BitcoinTag, DevAccounts, DevConfig, Mining, Spacing};
use rootlight::engine::DevNode;
use rootlight::types::B256;
use rootlight_node::bitcoin_chain::{BitcoinServers, RegtestChain};
use rootlight_node::local::{Entropy, host_input};
use rootlight_upstream::UpstreamError;
use rootlight_upstream::bitcoin::{BitcoinSource, BitcoinSourceConfig};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

const TIME: u64 = 1_800_000_000;

/// A development chain whose blocks are mined on a Bitcoin chain, with servers of the latter.
pub(crate) struct BitcoinFixture {
    node: DevNode,
    pub(crate) bitcoin: Arc<RegtestChain>,
    pub(crate) servers: BitcoinServers,
}

impl BitcoinFixture {
    pub(crate) async fn new(every: u32) -> Self {
        let bitcoin = Arc::new(RegtestChain::new(every));
        let entropy = Entropy::from_system().unwrap();
        let config = DevConfig { mining: Mining::Manual, ..DevConfig::new(&DevAccounts::default()) };
        let mut node = DevNode::new(config, host_input(&entropy)).unwrap();
        node.chain_mut().set_bitcoin(bitcoin.clone());
        let servers = BitcoinServers::start(bitcoin.clone()).await.unwrap();
        Self { node, bitcoin, servers }
    }

    pub(crate) fn mine(&mut self, count: u64) {
        self.node.chain_mut().mine_many(count, Spacing::Each(30), TIME).unwrap();
    }

    pub(crate) fn mine_bitcoin(
        &mut self,
        count: u64,
        tag: BitcoinTag,
        parent: Option<u32>,
    ) -> Result<u32, String> {
        let mined = self.node.chain_mut().mine_bitcoin(count, tag, parent, TIME);
        mined.map(|tip| tip.height).map_err(|error| error.to_string())
    }

    /// The 32 bytes after the tag of the Bitcoin block at a height.
    fn tag(&self, height: u32) -> Option<B256> {
        committed_hash(&self.bitcoin.coinbase(height).unwrap().transaction)
    }

    fn sources(&self) -> Vec<BitcoinSource> {
        let urls = [self.servers.esplora()].into_iter().chain(self.servers.electrum());
        urls.map(|url| source(&url)).collect()
    }
}

/// A source with a limit that tests can wait for.
fn source(url: &str) -> BitcoinSource {
    let config = BitcoinSourceConfig { timeout: Duration::from_secs(2), ..BitcoinSourceConfig::default() };
    BitcoinSource::open_with(url, config).unwrap()
}

#[tokio::test]
async fn each_source_gives_the_bitcoin_chain_of_a_development_chain() {
    let mut fixture = BitcoinFixture::new(5).await;
    fixture.mine(115);
    let expected = fixture.bitcoin.headers(0, 100);
    assert_eq!(expected.len(), 24, "block 0, and one of five headers");
    for source in fixture.sources() {
        assert_eq!(source.tip().await, Ok(23), "{source:?}");
        assert_eq!(source.headers(0, 2_016).await.as_deref(), Ok(&expected[..]), "{source:?}");
        for (from, count) in [(0, 1), (23, 1), (7, 10), (3, 11), (14, 500)] {
            let part = &expected[from as usize..24.min((from + count) as usize)];
            assert_eq!(source.headers(from, count).await.as_deref(), Ok(part), "{source:?}");
        }
        assert_eq!(source.headers(24, 5).await, Ok(Vec::new()), "{source:?}");
        if !source.offers_coinbases() {
            assert!(matches!(source.coinbases(&[1]).await, Err(UpstreamError::NotSent(_))));
            continue;
        }
        let heights: Vec<u32> = (0..24).collect();
        let coinbases = source.coinbases(&heights).await.unwrap();
        assert_eq!(coinbases.iter().map(|coinbase| coinbase.height).collect::<Vec<_>>(), heights);
        for coinbase in coinbases {
            assert!(!coinbase.proof.is_cut);
            let header = &expected[coinbase.height as usize];
            let proven = coinbase.proof.as_proof().prove(coinbase.height, header).unwrap();
            assert_eq!(proven.tag().is_some(), coinbase.height > 0, "{source:?} {coinbase:?}");
        }
        let known: Vec<u32> =
            source.coinbases(&[9_999, 4]).await.unwrap().iter().map(|coinbase| coinbase.height).collect();
        assert_eq!(known, [4], "a height above the newest block is left out");
        assert!(matches!(source.coinbases(&[9_999]).await, Err(UpstreamError::Rpc { .. })));
    }
}

/// Each block names the Bitcoin block that was the newest when it was mined.
#[tokio::test]
async fn parents_of_merge_mining_proofs_are_bitcoins_newest_blocks() {
    let mut fixture = BitcoinFixture::new(7).await;
    fixture.mine(50);
    let headers = fixture.bitcoin.headers(0, 100);
    let hashes: Vec<B256> = headers.iter().map(|header| BitcoinHeader::from(header).hash()).collect();
    let view = fixture.node.chain().view();
    for number in 1..=50_u64 {
        let header = view.headers().by_number(number).unwrap();
        let bitcoin = BitcoinHeader::first_of(&header.bitcoin_header).unwrap();
        let parent = (number as usize - 1) / 7;
        assert_eq!(bitcoin.previous(), hashes[parent], "{number}");
        let is_block = number % 7 == 0;
        assert_eq!(hashes.contains(&bitcoin.hash()), is_block, "{number}");
        if is_block {
            let tag = fixture.tag(parent as u32 + 1);
            assert_eq!(tag, header.hash_for_merged_mining().ok(), "{number}");
        }
    }
}

#[tokio::test]
async fn reorganisations_are_seen_by_every_source() {
    let mut fixture = BitcoinFixture::new(5).await;
    fixture.mine(50);
    let sources = fixture.sources();
    for source in &sources {
        assert_eq!(source.tip().await, Ok(10));
    }
    let before = fixture.bitcoin.headers(0, 20);
    assert!(fixture.mine_bitcoin(4, BitcoinTag::None, Some(6)).unwrap_err().contains("more work"));
    assert_eq!(fixture.mine_bitcoin(5, BitcoinTag::None, Some(6)), Ok(11));
    for source in &sources {
        assert_eq!(source.tip().await, Ok(11), "the connection of before is used");
        let headers = source.headers(0, 100).await.unwrap();
        assert_eq!(headers[..7], before[..7], "{source:?}");
        assert!((7..11).all(|height| headers[height] != before[height]), "{source:?}");
    }
    fixture.mine(5);
    assert_eq!(sources[0].tip().await, Ok(12), "blocks are mined on the new branch");
}

#[tokio::test]
async fn tags_of_every_kind_are_mined() {
    let mut fixture = BitcoinFixture::new(1_000).await;
    fixture.mine(460);
    let data = |hash: B256| (hash[..20].to_vec(), hash[20..27].to_vec(), hash[28..].to_vec());
    let mut mined = Vec::new();
    for tag in BitcoinTag::ALL {
        let height = fixture.mine_bitcoin(2, tag, None).unwrap();
        mined.push([height - 1, height].map(|height| fixture.tag(height)));
    }
    assert_eq!(mined[0], [None, None]);
    let head = fixture.node.chain().view().head().hash_for_merged_mining().unwrap();
    assert_eq!(mined[1], [Some(head), Some(head)]);
    let (_, cpv, number) = data(head);
    assert_eq!(number, 460_u32.to_be_bytes());
    for (kind, [first, second]) in mined[2..].iter().enumerate() {
        let (first, second) = (data(first.unwrap()), data(second.unwrap()));
        assert_ne!(first.0, second.0, "no block is named twice");
        assert_eq!((&first.1, &first.2), (&second.1, &second.2));
        let differing = first.1.iter().zip(&cpv).filter(|(one, other)| one != other).count();
        assert_eq!(differing, if kind == 1 { 7 } else { 0 }, "only foreign tags have other parents");
        let expected: u32 = if kind == 2 { 1_461 } else { 461 };
        assert_eq!(first.2, expected.to_be_bytes());
    }
    assert!(fixture.mine_bitcoin(0, BitcoinTag::None, None).is_err());
    assert!(fixture.mine_bitcoin(2_017, BitcoinTag::None, None).is_err());
    assert!(fixture.mine_bitcoin(1, BitcoinTag::None, Some(u32::MAX)).is_err());
}

/// A server that sends these bytes to every connection after its first bytes have come, again and again if asked to, and
/// then keeps the connection open. Counts connections.
async fn raw_server(bytes: Vec<u8>, repeats: bool) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, opened) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counted = opened.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            let bytes = bytes.clone();
            tokio::spawn(async move {
                let mut request = [0; 1_024];
                let _ = stream.read(&mut request).await;
                while stream.write_all(&bytes).await.is_ok() && repeats {}
                tokio::time::sleep(Duration::from_secs(60)).await;
            });
        }
    });
    (address, opened)
}

fn http(head: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n{body}").into_bytes()
}

/// Whether an error is one that a hostile server may cause.
type Expected<'a> = &'a (dyn Fn(&UpstreamError) -> bool + Sync);

/// Every call to a source fails, and within the limits of time.
async fn fails(url: &str, is_expected: impl Fn(&UpstreamError) -> bool) {
    let source = source(url);
    let begun = Instant::now();
    for error in [source.tip().await.err(), source.headers(0, 50).await.err()] {
        assert!(error.as_ref().is_some_and(&is_expected), "{url}: {error:?}");
    }
    if source.offers_coinbases() {
        let error = source.coinbases(&[1, 2]).await.unwrap_err();
        assert!(is_expected(&error), "{url}: {error:?}");
    }
    assert!(begun.elapsed() < Duration::from_secs(9), "{url}: {:?}", begun.elapsed());
}

#[tokio::test]
async fn hostile_http_servers_are_left_within_the_limits() {
    let (elsewhere, visits) = raw_server(http("200 OK", "5"), false).await;
    let moved = format!("302 Found\r\nlocation: http://{elsewhere}/blocks/tip/height");
    let large = |error: &UpstreamError| matches!(error, UpstreamError::TooLarge(_));
    let malformed = |error: &UpstreamError| matches!(error, UpstreamError::Malformed(_));
    let timeout = |error: &UpstreamError| matches!(error, UpstreamError::Timeout(_));
    let transport = |error: &UpstreamError| matches!(error, UpstreamError::Transport(_));
    let busy = |error: &UpstreamError| matches!(error, UpstreamError::Busy { status: 429, seconds: 7 });
    let status = |code| move |error: &UpstreamError| *error == UpstreamError::Status(code);
    let gone = |bytes: &str| bytes.as_bytes().to_vec();
    let cases: [(Vec<u8>, bool, Expected<'_>); 11] = [
        (http(&moved, ""), false, &status(302)),
        (http("500 Internal Server Error", "5"), false, &status(500)),
        (http("429 Too Many Requests\r\nretry-after: 7", ""), false, &busy),
        (http("200 OK", &"5".repeat(100)), true, &large),
        (http("200 OK\r\ncontent-length: 4", "five"), false, &malformed),
        (http("200 OK\r\ncontent-length: 20", "99999999999999999999"), false, &malformed),
        (http("200 OK\r\ncontent-length: 2", "-1"), false, &malformed),
        (http("200 OK\r\ncontent-length: 9", "5"), false, &timeout),
        (gone("\0\u{1}\u{2} nonsense\r\n\r\n"), false, &transport),
        (gone("HTTP/1.1 200 OK\r\nx: "), true, &transport),
        (Vec::new(), false, &timeout),
    ];
    join_all(cases.map(|(bytes, repeats, expected)| {
        Box::pin(async move {
            let (address, _) = raw_server(bytes, repeats).await;
            fails(&format!("http://{address}/api"), expected).await;
        })
    }))
    .await;
    assert_eq!(visits.load(Ordering::Relaxed), 0, "redirects are not followed");
}

#[tokio::test]
async fn hostile_electrum_servers_are_left_within_the_limits() {
    let upgrade = "HTTP/1.1 302 Found\r\nlocation: ws://127.0.0.1:1/\r\n\r\n";
    let any = |_: &UpstreamError| true;
    let timeout = |error: &UpstreamError| matches!(error, UpstreamError::Timeout(_));
    let large = |error: &UpstreamError| matches!(error, UpstreamError::TooLarge(_));
    let malformed = |error: &UpstreamError| matches!(error, UpstreamError::Malformed(_));
    let status = |error: &UpstreamError| *error == UpstreamError::Status(302);
    let cases: [(&str, Vec<u8>, bool, Expected<'_>); 11] = [
        ("tcp", Vec::new(), false, &timeout),
        ("tcp", vec![b'x'; 5_000], true, &large),
        ("tcp", vec![b'\n'; 5_000], true, &malformed),
        ("tcp", b"\xff\xfe\n".to_vec(), true, &malformed),
        ("tcp", b"{\"id\":0,\"result\":".to_vec(), true, &large),
        ("tcp", b"{\"method\":\"blockchain.headers.subscribe\",\"params\":[]}\n".to_vec(), true, &malformed),
        ("ws", Vec::new(), false, &timeout),
        ("ws", upgrade.as_bytes().to_vec(), false, &status),
        ("ws", vec![b'x'; 5_000], true, &any),
        ("ssl", b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), false, &any),
        ("ssl", Vec::new(), false, &timeout),
    ];
    join_all(cases.map(|(scheme, bytes, repeats, expected)| {
        Box::pin(async move {
            let (address, _) = raw_server(bytes, repeats).await;
            fails(&format!("{scheme}://{address}"), expected).await;
        })
    }))
    .await;
}

/// Passes on connections with TLS to a server without. The certificate is one of those in `tests`.
async fn tls_proxy(to: SocketAddr, certificate: &str, key: &str) -> SocketAddr {
    let file = |name| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name);
    let certificate = CertificateDer::from_pem_file(file(certificate)).unwrap();
    let key = PrivateKeyDer::from_pem_file(file(key)).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let (mut ours, mut theirs) = (acceptor.accept(stream).await?, TcpStream::connect(to).await?);
                copy_bidirectional(&mut ours, &mut theirs).await
            });
        }
    });
    address
}

fn address_of(url: &str) -> SocketAddr {
    let rest = url.split("://").nth(1).unwrap();
    rest.split('/').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_source_whose_certificate_is_not_trusted_is_not_read() {
    let fixture = BitcoinFixture::new(1).await;
    let [lines, messages] = fixture.servers.electrum();
    for (plain, scheme) in [(fixture.servers.esplora(), "https"), (lines, "ssl"), (messages, "wss")] {
        let proxy = tls_proxy(address_of(&plain), "server/tls/first.pem", "server/tls/first-key.pem").await;
        fails(&format!("{scheme}://{proxy}/electrum"), |error| matches!(error, UpstreamError::Transport(_)))
            .await;
    }
}

/// The URLs that the second process of the test below reads.
const URLS: &str = "ROOTLIGHT_TEST_BITCOIN_SOURCES";

/// Certificate authorities are read once in a process, so the sources with TLS are read by a second one.
#[tokio::test(flavor = "multi_thread")]
async fn sources_are_read_over_tls() {
    if let Ok(urls) = std::env::var(URLS) {
        for url in urls.split(' ') {
            assert_eq!(source(url).tip().await, Ok(3), "{url}");
            assert_eq!(source(url).headers(0, 100).await.unwrap().len(), 4, "{url}");
        }
        return;
    }
    let mut fixture = BitcoinFixture::new(1).await;
    fixture.mine(3);
    let [lines, messages] = fixture.servers.electrum();
    let mut urls = Vec::new();
    for (plain, scheme, path) in
        [(fixture.servers.esplora(), "https", ""), (lines, "ssl", ""), (messages, "wss", "/electrum")]
    {
        let proxy =
            tls_proxy(address_of(&plain), "program/tls/server.pem", "program/tls/server-key.pem").await;
        urls.push(format!("{scheme}://{proxy}{path}"));
    }
    let mut second = tokio::process::Command::new(std::env::current_exe().unwrap());
    second.args(["--exact", "bitcoin::sources_are_read_over_tls", "--nocapture"]).env(URLS, urls.join(" "));
    let authority = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/tls/authority.pem");
    let ended = second.env("SSL_CERT_FILE", authority).env_remove("SSL_CERT_DIR").output().await.unwrap();
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(ended.status.success() && said.contains("1 passed"), "{said}");
}

/// Sources that disagree each give their own chain: nothing is mixed, and the caller judges.
#[tokio::test]
async fn sources_that_disagree_are_told_apart() {
    let (mut one, mut other) = (BitcoinFixture::new(1).await, BitcoinFixture::new(1).await);
    one.mine(6);
    other.mine(4);
    assert!(other.mine_bitcoin(9, BitcoinTag::Foreign, Some(2)).is_ok());
    for (left, right) in one.sources().iter().zip(other.sources()) {
        assert_eq!((left.tip().await, right.tip().await), (Ok(6), Ok(11)));
        let (left, right) = (left.headers(0, 100).await.unwrap(), right.headers(0, 100).await.unwrap());
        assert_eq!(left[0], right[0]);
        assert!((3..7).all(|height| left[height] != right[height]));
    }
}
