//! The codings of answers, and which one a client prefers.

use axum::http::{HeaderMap, header};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    /// Brotli (RFC 7932).
    Brotli,
    /// gzip (RFC 1952).
    Gzip,
}

impl Coding {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }
}

/// The coding that a client prefers: the one that `Accept-Encoding` names with the higher quality other than 0, of equal
/// ones Brotli; gzip if only `*` is named (RFC 9110, 12.5.3).
pub(super) fn preferred(headers: &HeaderMap) -> Option<Coding> {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let (mut any, mut brotli, mut gzip) = (0.0, None, None);
    for coding in values.flat_map(|value| value.split(',')) {
        let (name, parameter) = coding.split_once(';').unwrap_or((coding, ""));
        let quality = parameter.trim().strip_prefix("q=").and_then(|text| text.trim().parse::<f32>().ok());
        let quality = quality.unwrap_or(1.0);
        match name.trim() {
            name if name.eq_ignore_ascii_case("br") => brotli = Some(quality),
            name if name.eq_ignore_ascii_case("gzip") => gzip = Some(quality),
            "*" => any = quality,
            _ => {}
        }
    }
    let (brotli, gzip) = (brotli.unwrap_or(0.0), gzip.unwrap_or(any));
    if brotli > 0.0 && brotli >= gzip {
        return Some(Coding::Brotli);
    }
    (gzip > 0.0).then_some(Coding::Gzip)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_coding_named_with_the_higher_quality_above_zero_is_used() {
        use Coding::{Brotli, Gzip};
        for (text, accepted) in [
            ("gzip", Some(Gzip)),
            ("gzip, deflate, br, zstd", Some(Brotli)),
            ("gzip, BR;q=0.9", Some(Gzip)),
            ("deflate, GZIP;q=0.5", Some(Gzip)),
            ("gzip;q=0", None),
            ("gzip; q=0.0, *", None),
            ("gzip;q=0, br;q=0.1", Some(Brotli)),
            ("*", Some(Gzip)),
            ("*;q=0", None),
            ("br", Some(Brotli)),
            ("br;q=0", None),
            ("", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, text.parse().unwrap());
            assert_eq!(preferred(&headers), accepted, "{text}");
        }
        assert_eq!(preferred(&HeaderMap::new()), None);
    }
}
