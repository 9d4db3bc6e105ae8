//! The page for browsers (`www/`): files that the program contains (`build.rs`), served at GET `/` and below `/assets/`.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::{Mutex, PoisonError};

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::compress::{self, Coding};
use super::sourcify::SourcifyAddress;

/// The content security policy of the page. Scripts, styles and WebAssembly come from this server only, the page calls no other
/// server, no other page may show it in a frame, and text cannot become script: the page reads text from the chain, and shares
/// its origin with a server that may have keys of accounts. The page's default policy of trusted types allows the addresses of
/// its workers only (`www/src/workers.ts`).
const POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types default";
/// The header that tells the page the address of a Sourcify server.
const SOURCIFY: &str = "x-rootlight-sourcify";
/// The `Cache-Control` header of assets: a browser may store them for a year, because their names contain a hash of their
/// contents.
const KEEP: &str = "public, max-age=31536000, immutable";
/// The error of a request that is neither POST nor for a file of the page.
const JSON_RPC: &str = "send JSON-RPC by POST";
/// The error of a request for the page to a program that was built without it.
const NOT_BUILT: &str = "send JSON-RPC by POST; this program was built without its page for browsers: run \
     `cargo xtask build`";

/// A file of the page.
#[derive(Debug, Clone, Copy)]
pub struct PageFile {
    /// The path in the address; `/` for the page itself.
    pub path: &'static str,
    /// The media type.
    pub kind: &'static str,
    /// The contents, compressed by Brotli.
    pub brotli: &'static [u8],
    /// The contents, compressed by gzip.
    pub gzip: &'static [u8],
}

/// The page that a server shows to browsers.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// All files; empty if the page was not built.
    pub files: &'static [PageFile],
}

impl Page {
    /// The page that was built before this program. It has no files if it was not built.
    #[must_use]
    pub const fn embedded() -> Self {
        Self { files: include!(concat!(env!("OUT_DIR"), "/page.rs")) }
    }

    /// Answers a GET or HEAD request for a path below the base path; `None` for paths that are not the page's.
    pub(super) fn answer(&self, method: &Method, path: &str, headers: &HeaderMap) -> Option<Response> {
        if *method != Method::GET && *method != Method::HEAD {
            return None;
        }
        self.files.iter().find(|file| file.path == path).map(|file| file.response(headers))
    }

    /// The error of a request for a path below the base path that is neither POST nor for a file of the page.
    pub(super) fn hint(page: Option<&Self>, path: &str) -> &'static str {
        match (page, path) {
            (Some(Self { files: [] }), "" | "/") => NOT_BUILT,
            _ => JSON_RPC,
        }
    }
}

/// Lets the page ask a Sourcify server: adds the server to the policy in these headers, and its address as a header of its own,
/// which the page reads from its own response.
pub(super) fn allow(headers: &mut HeaderMap, sourcify: &SourcifyAddress) {
    let policy = POLICY.replace("connect-src 'self'", &format!("connect-src 'self' {}", sourcify.origin()));
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        headers.insert(SOURCIFY, sourcify.header());
    }
}

impl PageFile {
    /// The response with the file, in the coding that the client prefers.
    fn response(&self, headers: &HeaderMap) -> Response {
        let (body, coding) = match compress::preferred(headers) {
            Some(Coding::Brotli) => (Bytes::from_static(self.brotli), Some(Coding::Brotli)),
            Some(Coding::Gzip) => (Bytes::from_static(self.gzip), Some(Coding::Gzip)),
            None => match self.plain() {
                Some(plain) => (plain, None),
                None => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            },
        };
        let mut response = (StatusCode::OK, body).into_response();
        let cache = if self.path == "/" { "no-cache" } else { KEEP };
        let set = [
            (header::CONTENT_TYPE, self.kind),
            (header::CACHE_CONTROL, cache),
            (header::VARY, "accept-encoding"),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::X_FRAME_OPTIONS, "DENY"),
        ];
        for (name, value) in set {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        let isolated = ["cross-origin-opener-policy", "cross-origin-resource-policy"];
        for name in isolated {
            response.headers_mut().insert(name, HeaderValue::from_static("same-origin"));
        }
        if let Some(coding) = coding {
            let name = HeaderValue::from_static(coding.name());
            response.headers_mut().insert(header::CONTENT_ENCODING, name);
        }
        response
    }

    /// The contents, for the few clients that accept neither coding. Each file is decompressed once and then stays in memory, so
    /// that clients that ask again or read slowly take neither time nor further memory: all files together have three
    /// megabytes. `None` if the file does not decompress.
    fn plain(&self) -> Option<Bytes> {
        // Static, because the files are the same for every server. The key of a file is the address of its gzip form.
        static DECOMPRESSED: Mutex<BTreeMap<usize, Bytes>> = Mutex::new(BTreeMap::new());
        let mut decompressed = DECOMPRESSED.lock().unwrap_or_else(PoisonError::into_inner);
        let file = self.gzip.as_ptr().addr();
        if let Some(plain) = decompressed.get(&file) {
            return Some(plain.clone());
        }
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(self.gzip).read_to_end(&mut plain).ok()?;
        let plain = Bytes::from(plain);
        decompressed.insert(file, plain.clone());
        Some(plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_decompressed_once_for_all_clients_without_compression() {
        use std::io::Write as _;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(&[7; 5000]).unwrap();
        let gzip = encoder.finish().unwrap().leak();
        let file = PageFile { path: "/assets/x.js", kind: "text/javascript", brotli: &[], gzip };
        let (first, second) = (file.plain().unwrap(), file.plain().unwrap());
        assert_eq!((first.as_ptr(), first.len()), (second.as_ptr(), 5000), "the same bytes, not a copy");
    }

    #[test]
    fn the_embedded_page_has_an_index_and_hashed_assets_only() {
        let files = Page::embedded().files;
        for file in files.iter().filter(|file| file.path != "/") {
            assert!(file.path.starts_with("/assets/"), "{}: other paths could be API keys", file.path);
            assert!(file.plain().is_some(), "{}: gzip", file.path);
            let mut plain = Vec::new();
            brotli::Decompressor::new(file.brotli, 4096).read_to_end(&mut plain).unwrap();
            assert_eq!(
                Some(Bytes::from(plain)),
                file.plain(),
                "{}: both forms have the same contents",
                file.path
            );
        }
        assert!(files.is_empty() || files.iter().any(|file| file.path == "/"), "no index.html");
    }
}
