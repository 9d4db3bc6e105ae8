//! The address of a Sourcify server (`--sourcify`), which publishes the sources of contracts. The page may ask it for the ABI of
//! a contract.

use std::str::FromStr;

use axum::http::{HeaderValue, Uri};

/// The address of a Sourcify server, such as `https://sourcify.dev/server`. There is no default: the page calls no other server
/// than its own unless the operator names one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcifyAddress {
    address: HeaderValue,
    /// Scheme, host and port, in the form of a content security policy.
    origin: String,
}

impl SourcifyAddress {
    /// The address as the page reads it from a header.
    pub(super) fn header(&self) -> HeaderValue {
        self.address.clone()
    }

    /// The part of the page's policy that allows the address.
    pub(super) fn origin(&self) -> &str {
        &self.origin
    }
}

impl FromStr for SourcifyAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str =
            "must be an address such as https://sourcify.dev/server, without a user, a query or a fragment";
        let uri: Uri = text.parse().map_err(|_| WRONG)?;
        let (Some(scheme @ ("http" | "https")), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(WRONG);
        };
        // A semicolon would end the policy's rule and begin another one.
        let plain = |letter: char| letter.is_ascii_alphanumeric() || ".-:[]".contains(letter);
        if !authority.as_str().chars().all(plain) || uri.query().is_some() || text.contains('#') {
            return Err(WRONG);
        }
        let address = HeaderValue::from_str(text.trim_end_matches('/')).map_err(|_| WRONG)?;
        Ok(Self { address, origin: format!("{scheme}://{authority}") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_could_change_the_policy_is_refused() {
        let address: SourcifyAddress = "https://sourcify.example:8443/server/".parse().unwrap();
        assert_eq!(address.header(), "https://sourcify.example:8443/server");
        assert_eq!(address.origin(), "https://sourcify.example:8443");
        let wrong = [
            "sourcify.example",
            "ftp://sourcify.example",
            "https://sourcify.example;script-src *",
            "https://a;b.example",
            "https://'self'/",
            "https://user:word@sourcify.example",
            "https://sourcify.example/?a=b",
            "https://sourcify.example/#a",
            "https://*",
            "",
        ];
        for text in wrong {
            assert!(text.parse::<SourcifyAddress>().is_err(), "{text}");
        }
    }
}
