//! Headers that arrive in one form, in another, or not at all.

use alloc::{string::ToString, vec, vec::Vec};

use serde_json::value::RawValue;

use super::{
    fault::SyncCause,
    header_batch::encode_headers,
    header_window::HeaderWindow,
    upstream::{RequestFailure, UpstreamResponse},
};
use crate::consensus::{
    Network,
    testing::{child, easy_network, header, mine},
};

const NUMBER: u64 = 77;

fn rpc() -> UpstreamResponse {
    Err(RequestFailure::Rpc { code: -32601, message: "method not found".into() })
}

fn says(json: &str) -> UpstreamResponse {
    Ok(RawValue::from_string(json.to_string()).unwrap())
}

/// The cause for which a header counts as unavailable, given the responses in all three forms.
fn cause(announced: u64, forms: [UpstreamResponse; 3]) -> Option<SyncCause> {
    let (mut window, network) = (HeaderWindow::new(NUMBER, NUMBER, announced), Network::regtest());
    let last = forms.len() - 1;
    for (form, response) in forms.into_iter().enumerate() {
        let asked = window.requests().len();
        assert_eq!(asked, if form == last { 2 } else { 1 });
        let taken = window.take(vec![response; asked], &network);
        assert_eq!(taken, form == last);
    }
    let (headers, missing) = window.into_headers();
    assert!(headers.is_empty());
    missing.map(|(number, cause)| {
        assert_eq!(number, NUMBER);
        cause
    })
}

/// The first cause is the most informative, unless it only says that there is no such block.
#[test]
fn the_most_informative_cause_is_reported() {
    let wrong = || says("{}");
    let decode = cause(NUMBER, [wrong(), rpc(), rpc()]);
    assert!(matches!(decode, Some(SyncCause::Decode(_))), "{decode:?}");
    assert_eq!(cause(NUMBER, [rpc(), wrong(), rpc()]), decode);
    assert_eq!(cause(NUMBER, [wrong(), says("5"), says("5")]), decode);
    assert!(matches!(cause(NUMBER, [rpc(), says("null"), rpc()]), Some(SyncCause::Call(_))));
    assert_eq!(cause(NUMBER, [says("null"), rpc(), rpc()]), Some(SyncCause::Missing));
}

/// Blocks above the announced height may be missing, but a response must decode as a header.
#[test]
fn headers_above_the_announced_height_may_be_missing_but_not_wrong() {
    assert_eq!(cause(NUMBER - 1, [rpc(), rpc(), rpc()]), None);
    assert!(matches!(cause(NUMBER - 1, [says("{}"), rpc(), rpc()]), Some(SyncCause::Decode(_))));
    let mut window = HeaderWindow::new(NUMBER, NUMBER, NUMBER - 1);
    assert!(window.take(vec![says("null")], &Network::regtest()), "the end of the chain");
    assert!(window.into_headers().1.is_none());
}

#[test]
fn a_complete_binary_response_leaves_no_requests() {
    let network = easy_network(&[], &[]);
    let mut headers = vec![mine(header(&network, NUMBER))];
    headers.extend([mine(child(&network, &headers[0]))]);
    headers.extend([mine(child(&network, &headers[1]))]);
    let text = encode_headers(headers.iter().map(|header| (header.header(), Some(&[][..]))));
    for text in
        [alloc::format!("\"{text}\""), alloc::format!("\"\\u{:04x}{}\"", text.as_bytes()[0], &text[1..])]
    {
        let (first, last) = (headers[0].number, headers[2].number);
        let mut window = HeaderWindow::new(first, last, last).in_binary(true);
        assert_eq!(window.requests().len(), 1);
        assert!(window.take(vec![says(&text)], &network));
        assert!(window.was_binary() && !window.is_binary() && window.requests().is_empty());
        let (found, missing) = window.into_headers();
        let numbers: Vec<u64> = found.iter().map(|found| found.header.header().number).collect();
        assert_eq!((numbers, missing), (vec![first, first + 1, last], None));
    }
}
