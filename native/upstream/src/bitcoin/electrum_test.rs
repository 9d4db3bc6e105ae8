//! The readers of Electrum's messages, and calls to servers that answer in every way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use rootlight::consensus::bitcoin::double_sha256;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;

use super::super::electrum_link::Transport;
use super::*;

fn headers(value: &Value, count: usize) -> Result<usize, &'static str> {
    let headers: Headers = serde_json::from_value(value.clone()).map_err(|_| "form")?;
    headers.decode(count).map(|headers| headers.len())
}

#[test]
fn both_forms_of_headers_are_read() {
    let one = "ab".repeat(HEADER_LEN);
    let two = one.repeat(2);
    assert_eq!(headers(&json!({"hex": two, "count": 2, "max": 2016}), 2), Ok(2));
    assert_eq!(headers(&json!({"headers": [one, one], "count": 2, "max": 2016}), 2), Ok(2));
    assert_eq!(headers(&json!({"hex": "", "count": 0}), 2), Ok(0));
    // The count that a server states is not used.
    assert_eq!(headers(&json!({"hex": one, "count": 4_000_000_000_u64}), 2), Ok(1));
    assert_eq!(headers(&json!({}), 2), Err("the response has neither `hex` nor `headers`"));
    let both = json!({"hex": two, "headers": [one]});
    assert_eq!(headers(&both, 2), Err("the response has both `hex` and `headers`"));
    for wrong in [
        json!({"hex": &two[1..]}),
        json!({"hex": &two[2..]}),
        json!({"hex": format!("0x{}", &two[2..])}),
        json!({"hex": two.replace('a', "é")}),
        json!({"hex": one.repeat(3)}),
        json!({"headers": [one, one, one]}),
        json!({"headers": [two, ""]}),
        json!({"headers": [1]}),
        json!({"hex": 7}),
    ] {
        assert!(headers(&wrong, 2).is_err(), "{wrong}");
    }
}

#[test]
fn positions_and_transactions_have_hashes() {
    let hash = "11".repeat(32);
    let position = |value: Value| serde_json::from_value::<Position>(value).unwrap().decode();
    assert!(position(json!({"tx_hash": hash, "merkle": vec![&hash; MAX_BRANCH]})).is_ok());
    assert!(position(json!({"tx_hash": hash, "merkle": vec![&hash; MAX_BRANCH + 1]})).is_err());
    assert!(position(json!({"tx_hash": "\"],[\"", "merkle": []})).is_err());
    assert!(position(json!({"tx_hash": hash, "merkle": ["12"]})).is_err());
    let text = alloy_primitives::hex::encode([7; 80]);
    assert_eq!(transaction(&text), Ok(vec![7; 80]));
    for wrong in ["zz", &text[1..], &format!("0x{text}"), &"00".repeat(MAX_COINBASE_LEN + 1)] {
        assert!(transaction(wrong).is_err());
    }
}

proptest! {
    #[test]
    fn any_message_is_answered(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = read_message(&bytes);
    }

    #[test]
    fn any_texts_are_answered(text in ".{0,200}", list in proptest::collection::vec(".{0,80}", 0..5)) {
        let _ = Headers { hex: Some(text.clone()), headers: None }.decode(3);
        let _ = Headers { hex: None, headers: Some(list.clone()) }.decode(3);
        let _ = Position { tx_hash: text.clone(), merkle: list }.decode();
        let _ = transaction(&text);
    }

    #[test]
    fn a_changed_response_is_answered(at in 0usize..200, value: u8) {
        let hash = "11".repeat(32);
        let mut bytes = json!({"id": 7, "result": {"tx_hash": hash, "merkle": [hash]}}).to_string().into_bytes();
        let at = at % bytes.len();
        bytes[at] = value;
        if let Ok((_, result)) = read_message(&bytes) {
            let _ = parse::<Position>(result).map(|position| position.decode());
        }
    }
}

/// A server that answers each line by a function of its request, which gives the lines to send. `None` ends the connection.
async fn server(
    answer: impl Fn(&Value) -> Option<Vec<u8>> + Send + Sync + 'static,
) -> (Electrum, SourceQuota, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (answer, opened) = (Arc::new(answer), Arc::new(AtomicUsize::new(0)));
    let counted = opened.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                let mut line = String::new();
                while stream.read_line(&mut line).await.is_ok_and(|length| length > 0) {
                    let Some(bytes) = answer(&serde_json::from_str(&line).unwrap()) else { return };
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                    line.clear();
                }
            });
        }
    });
    let quota = SourceQuota::alone(16 << 20, 16 << 20);
    let host = "127.0.0.1".to_owned();
    let endpoint = Endpoint { transport: Transport::Lines, host, port, url: String::new() };
    (Electrum::new(endpoint, Duration::from_millis(500), quota.clone()), quota, opened)
}

fn response(request: &Value, result: &Value) -> Option<Vec<u8>> {
    Some(format!("{}\n", json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).into_bytes())
}

/// Whether a request is the first one of a connection, which honest and hostile servers answer alike here.
fn version(request: &Value) -> Option<Vec<u8>> {
    let is_first = request["method"] == "server.version";
    if is_first {
        assert_eq!(request["params"][1], json!(["1.4", "1.6"]));
    }
    is_first.then(|| response(request, &json!(["Server 1", "1.6"]))).flatten()
}

#[tokio::test]
async fn notices_and_late_responses_are_passed_over() {
    let (electrum, _, opened) = server(|request| {
        version(request).or_else(|| {
            let notice = json!({"method": "blockchain.headers.subscribe", "params": [{"height": 9}]});
            let late = json!({"id": 0, "result": {"height": 8}});
            let other = json!({"id": "x", "result": {"height": 7}});
            let strays = format!("{notice}\n{late}\n{other}\n").into_bytes();
            Some([strays, response(request, &json!({"height": 5, "hex": ""}))?].concat())
        })
    })
    .await;
    for _ in 0..3 {
        assert_eq!(electrum.tip().await, Ok(5));
    }
    assert_eq!(opened.load(Ordering::Relaxed), 1, "the connection stays open");
}

#[tokio::test]
async fn a_connection_that_the_server_closed_is_opened_again_once() {
    let asked = AtomicUsize::new(0);
    let (electrum, _, opened) = server(move |request| {
        version(request).or_else(|| {
            // Every second request of a tip ends the connection.
            let ends = asked.fetch_add(1, Ordering::Relaxed) % 2 == 1;
            if ends { None } else { response(request, &json!({"height": 5})) }
        })
    })
    .await;
    for _ in 0..3 {
        assert_eq!(electrum.tip().await, Ok(5));
    }
    assert_eq!(opened.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn hostile_messages_end_the_call_within_its_limits() {
    type Answer = fn(&Value) -> Option<Vec<u8>>;
    let malformed = |error: &UpstreamError| matches!(error, UpstreamError::Malformed(_));
    let timeout = |error: &UpstreamError| matches!(error, UpstreamError::Timeout(500));
    let large = |error: &UpstreamError| matches!(error, UpstreamError::TooLarge(_));
    let transport = |error: &UpstreamError| matches!(error, UpstreamError::Transport(_));
    let rpc = |error: &UpstreamError| matches!(error, UpstreamError::Rpc { code: 1, .. });
    type Check<'a> = &'a dyn Fn(&UpstreamError) -> bool;
    let cases: [(&str, Answer, Check<'_>); 13] = [
        ("not JSON", |_| Some(b"nonsense\n".to_vec()), &malformed),
        ("not UTF-8", |_| Some(b"{\"id\":1,\"result\":\"\xff\"}\n".to_vec()), &malformed),
        ("empty lines", |_| Some(vec![b'\n'; 100_000]), &malformed),
        ("an array", |_| Some(b"[]\n".to_vec()), &malformed),
        ("depth", |_| Some([vec![b'['; 400_000], vec![b'\n']].concat()), &malformed),
        (
            "depth in a result",
            |request| {
                let open = "[".repeat(200_000);
                Some(format!("{{\"id\":{},\"result\":{open}}}\n", request["id"]).into_bytes())
            },
            &malformed,
        ),
        ("huge number", |request| response(request, &json!({"height": 1_u64 << 40})), &malformed),
        ("negative number", |request| response(request, &json!({"height": -1})), &malformed),
        ("another form", |request| response(request, &json!("5")), &malformed),
        ("an endless line", |_| Some(vec![b'x'; 2 << 20]), &large),
        ("nothing", |_| Some(Vec::new()), &timeout),
        ("the end", |_| None, &transport),
        (
            "an error without an id",
            |_| Some(b"{\"id\":null,\"error\":{\"code\":1,\"message\":\"no\"}}\n".to_vec()),
            &rpc,
        ),
    ];
    for (name, answer, expected) in cases {
        let (electrum, quota, _) = server(move |request| version(request).or_else(|| answer(request))).await;
        let begun = std::time::Instant::now();
        let error = electrum.tip().await.unwrap_err();
        assert!(expected(&error), "{name}: {error:?}");
        assert!(begun.elapsed() < Duration::from_secs(3), "{name}: {:?}", begun.elapsed());
        assert_eq!(quota.taken(), 0, "{name}");
        // A whole message of another form than the protocol's leaves nothing behind on the connection.
        let is_whole = ["huge number", "negative number", "another form"].contains(&name);
        assert_eq!(electrum.session.lock().await.is_some(), is_whole, "{name}");
    }
}

#[tokio::test]
async fn a_flood_of_strays_ends_the_call() {
    let (electrum, ..) = server(|request| {
        version(request).or_else(|| {
            let stray = format!("{}\n", json!({"id": 99_999, "result": "x".repeat(1_000)}));
            Some(stray.repeat(1_000).into_bytes())
        })
    })
    .await;
    assert!(matches!(electrum.tip().await, Err(UpstreamError::Malformed(_))));
}

fn coinbase(height: u64) -> Vec<u8> {
    let script = [1, u8::try_from(height).unwrap()];
    [&[1, 0, 0, 0, 1][..], &[0; 36], &script, &[0xff; 4], &[0], &[0; 4]].concat()
}

/// The coinbase's hash as servers show it.
fn coinbase_hash(height: u64) -> String {
    let mut hash = double_sha256(&coinbase(height));
    hash.reverse();
    alloy_primitives::hex::encode(hash)
}

/// A server gives some of the coinbases: the others are left out. False ones are handed on, and proven wrong where they are used.
#[tokio::test]
async fn coinbases_that_are_withheld_are_left_out() {
    let (electrum, ..) = server(|request| {
        version(request).or_else(|| {
            if request["method"] == "blockchain.transaction.id_from_pos" {
                let height = request["params"][0].as_u64().unwrap();
                assert_eq!(request["params"], json!([height, 0, true]));
                if height == 3 {
                    let error = json!({"code": 1, "message": "no such block"});
                    return Some(format!("{}\n", json!({"id": request["id"], "error": error})).into_bytes());
                }
                return response(
                    request,
                    &json!({"tx_hash": coinbase_hash(height), "merkle": ["22".repeat(32)]}),
                );
            }
            assert_eq!(request["method"], "blockchain.transaction.get");
            let named = request["params"][0].as_str().unwrap();
            let height = (0..10).find(|height| coinbase_hash(*height) == named).unwrap();
            let given = match height {
                4 => alloy_primitives::hex::encode(coinbase(5)),
                5 => "no digits".to_owned(),
                height => alloy_primitives::hex::encode(coinbase(height)),
            };
            response(request, &json!(given))
        })
    })
    .await;
    let given = electrum.coinbases(&[1, 3, 4, 5, 2]).await.unwrap();
    let expected = [(1, 1), (4, 5), (2, 2)]
        .map(|(height, given)| RawCoinbase::whole(height, coinbase(given), &[B256::repeat_byte(0x22)]));
    assert_eq!(given, expected);
    assert!(matches!(electrum.coinbases(&[3]).await, Err(UpstreamError::Rpc { code: 1, .. })));
    assert!(matches!(electrum.coinbases(&[5]).await, Err(UpstreamError::Malformed(_))));
}

/// A dropped call leaves no connection whose responses the next call could take for its own.
#[tokio::test]
async fn a_dropped_call_leaves_no_connection() {
    let asked = AtomicUsize::new(0);
    let (electrum, _, opened) = server(move |request| {
        version(request).or_else(|| match asked.fetch_add(1, Ordering::Relaxed) {
            1 => Some(Vec::new()),
            _ => response(request, &json!({"height": 5})),
        })
    })
    .await;
    assert_eq!(electrum.tip().await, Ok(5));
    assert!(timeout(Duration::from_millis(100), electrum.tip()).await.is_err());
    assert_eq!(electrum.tip().await, Ok(5));
    assert_eq!(opened.load(Ordering::Relaxed), 2);
}
