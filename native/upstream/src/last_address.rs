//! The IP address of an upstream, by which the operator can ban it.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// The IP address at which an upstream was reached last, or which its URL names.
#[derive(Debug, Default)]
pub(super) struct LastAddress(Mutex<Option<IpAddr>>);

impl LastAddress {
    /// The address that a URL names; a domain name is not resolved.
    pub(super) fn of(url: &str) -> Self {
        let url: Option<reqwest::Url> = url.parse().ok();
        let host = url.as_ref().and_then(reqwest::Url::host_str).unwrap_or_default();
        Self(Mutex::new(host.trim_start_matches('[').trim_end_matches(']').parse().ok()))
    }

    /// Notes the address of a new connection, if it is known.
    pub(super) fn note(&self, address: Option<IpAddr>) {
        if address.is_some() {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = address;
        }
    }

    /// The address; `None` until a connection to a domain name is made.
    pub(super) fn address(&self) -> Option<IpAddr> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
