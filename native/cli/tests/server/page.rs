//! The page at GET `/`. These tests bring a page of their own, so that they need no built one.

use std::io::Write as _;
use std::sync::LazyLock;

use reqwest::header::{ACCEPT_ENCODING, CONTENT_TYPE, HOST};
use reqwest::{Method, Response};
use rootlight_server::{Page, PageFile, ServerConfig};

use crate::common::{RunningServer, client, config, start};

const INDEX: &[u8] = b"<!doctype html><title>Rootlight</title>";

/// A page of two files.
static FILES: LazyLock<[PageFile; 2]> = LazyLock::new(|| {
    [("/", "text/html; charset=utf-8"), ("/assets/x-1f.wasm", "application/wasm")]
        .map(|(path, kind)| PageFile { path, kind, brotli: brotli(INDEX).leak(), gzip: gzip(INDEX).leak() })
});

fn brotli(plain: &[u8]) -> Vec<u8> {
    let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 18);
    encoder.write_all(plain).unwrap();
    encoder.into_inner()
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn with_page() -> ServerConfig {
    let mut config = config();
    config.operations.page = Some(Page { files: &*FILES });
    config
}

async fn get(server: &RunningServer, path: &str) -> Response {
    client().get(server.url(path)).send().await.unwrap()
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn the_page_is_at_the_root_and_posts_there_stay_json_rpc() {
    let server = start(with_page()).await;
    let page = get(&server, "/").await;
    assert_eq!((page.status().as_u16(), header(&page, "content-type")), (200, "text/html; charset=utf-8"));
    assert_eq!(header(&page, "cache-control"), "no-cache", "a new program has a new page");
    assert_eq!(page.bytes().await.unwrap(), INDEX);
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;
    let post = client().post(server.url("/")).header(CONTENT_TYPE, "application/json").body(body);
    let answer = post.send().await.unwrap();
    assert_eq!((answer.status().as_u16(), header(&answer, "content-type")), (200, "application/json"));
    assert_eq!(header(&answer, "content-security-policy"), "");
}

#[tokio::test]
async fn assets_have_their_media_type_and_may_be_kept() {
    let server = start(with_page()).await;
    let asset = get(&server, "/assets/x-1f.wasm").await;
    assert_eq!(header(&asset, "content-type"), "application/wasm");
    assert!(header(&asset, "cache-control").ends_with("immutable"));
    for missing in ["/assets/", "/assets/x-1f.js", "/index.html", "//"] {
        assert_eq!(get(&server, missing).await.status(), 405, "{missing}");
    }
}

#[tokio::test]
async fn every_file_has_the_policy_that_keeps_text_from_becoming_script() {
    let server = start(with_page()).await;
    for path in ["/", "/assets/x-1f.wasm"] {
        let file = get(&server, path).await;
        let policy = header(&file, "content-security-policy").to_owned();
        for part in [
            "default-src 'none'",
            "script-src 'self' 'wasm-unsafe-eval'",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types default",
            "worker-src 'self'",
        ] {
            assert!(policy.split("; ").any(|rule| rule == part), "{path}: {part} in {policy}");
        }
        assert!(!policy.contains("unsafe-inline") && !policy.contains("'unsafe-eval'"), "{policy}");
        assert_eq!(header(&file, "x-content-type-options"), "nosniff");
        assert_eq!(header(&file, "referrer-policy"), "no-referrer");
    }
}

#[tokio::test]
async fn files_are_sent_in_the_coding_that_the_browser_accepts() {
    let server = start(with_page()).await;
    for (accepted, coding, bytes) in
        [("gzip, br", "br", brotli(INDEX)), ("gzip", "gzip", gzip(INDEX)), ("identity", "", INDEX.to_vec())]
    {
        let request = reqwest::Client::builder().no_gzip().build().unwrap().get(server.url("/"));
        let file = request.header(ACCEPT_ENCODING, accepted).send().await.unwrap();
        assert_eq!((header(&file, "content-encoding"), header(&file, "vary")), (coding, "accept-encoding"));
        assert_eq!(file.bytes().await.unwrap(), bytes, "{accepted}");
    }
    let head = client().head(server.url("/")).send().await.unwrap();
    assert_eq!(head.status(), 200);
    assert!(head.bytes().await.unwrap().is_empty());
    let put = client().request(Method::PUT, server.url("/")).send().await.unwrap();
    assert_eq!(put.status(), 405);
}

#[tokio::test]
async fn the_hosted_profile_has_the_page_too() {
    let mut config = with_page();
    config.admission.profile = rootlight_server::methods::Profile::Hosted;
    let server = start(config).await;
    assert_eq!(get(&server, "/").await.bytes().await.unwrap(), INDEX);
}

#[tokio::test]
async fn the_page_is_refused_under_a_foreign_host_name() {
    let server = start(with_page()).await;
    let request = client().get(server.url("/")).header(HOST, "evil.example");
    assert_eq!(request.send().await.unwrap().status(), 403, "DNS rebinding");
}

#[tokio::test]
async fn below_a_base_path_the_page_is_there_and_its_address_ends_with_a_slash() {
    let mut config = with_page();
    config.admission.base_path = "/v1".into();
    let server = start(config).await;
    assert_eq!(get(&server, "/v1/").await.bytes().await.unwrap(), INDEX);
    assert_eq!(get(&server, "/v1/assets/x-1f.wasm").await.status(), 200);
    assert_eq!(get(&server, "/").await.status(), 405);
    let plain = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let moved = plain.get(server.url("/v1")).send().await.unwrap();
    assert_eq!((moved.status().as_u16(), header(&moved, "location")), (308, "/v1/"));
}

#[tokio::test]
async fn the_page_may_ask_a_sourcify_server_only_if_the_operator_names_one() {
    let policy = |page: &Response| header(page, "content-security-policy").to_owned();
    let plain = get(&start(with_page()).await, "/").await;
    assert!(policy(&plain).contains("connect-src 'self';"), "{}", policy(&plain));
    assert_eq!(header(&plain, "x-rootlight-sourcify"), "");
    let mut config = with_page();
    config.operations.sourcify = Some("https://sourcify.example/server/".parse().unwrap());
    let page = get(&start(config).await, "/").await;
    assert_eq!(header(&page, "x-rootlight-sourcify"), "https://sourcify.example/server");
    let allowed = policy(&plain).replace("connect-src 'self'", "connect-src 'self' https://sourcify.example");
    assert_eq!(policy(&page), allowed, "nothing else is allowed");
}

#[tokio::test]
async fn a_program_without_the_page_says_how_to_build_it() {
    let mut config = config();
    config.operations.page = Some(Page { files: &[] });
    let server = start(config).await;
    let answer = get(&server, "/").await;
    assert_eq!(answer.status(), 405);
    assert!(answer.text().await.unwrap().contains("cargo xtask build"));
    for elsewhere in ["/metrics", "/admin", "/v1"] {
        let text = get(&server, elsewhere).await.text().await.unwrap();
        assert!(!text.contains("built without"), "{elsewhere}: {text}");
    }
    let off = start(crate::common::config()).await;
    assert!(!get(&off, "/").await.text().await.unwrap().contains("xtask"), "--no-page");
}
