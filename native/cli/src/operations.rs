//! Flags for operators: listeners, TLS, proxies and metrics.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use rootlight_server::{Listen, Operations, Page, Proxies, SourcifyAddress, TlsFiles, TrustedProxy};

/// The address of `--metrics-listen` without a value.
const METRICS_ADDRESS: &str = "127.0.0.1:4446";

/// Flags for operators.
#[derive(Debug, Clone, Args)]
pub struct OperationArgs {
    /// Listen on this address instead of --host: HOST:PORT, or unix:PATH for a Unix socket (repeatable)
    #[arg(long, value_name = "HOST:PORT|unix:PATH", conflicts_with = "host")]
    pub listen: Vec<Listen>,
    /// Mode of Unix sockets, in octal [default: 600, for the owner only]
    #[arg(long, value_name = "MODE", default_value = "600", value_parser = mode, hide_default_value = true)]
    pub unix_mode: u32,
    /// Serve TLS with this certificate: a PEM file with those of intermediate authorities behind it. It is read
    /// again when it changes, and on SIGHUP
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of --tls-cert, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Proxies whose x-forwarded-for and x-request-id headers count: networks, addresses, or unix for whoever
    /// connects to a Unix socket (repeatable)
    #[arg(long, value_name = "CIDR|unix")]
    pub trusted_proxy: Vec<TrustedProxy>,
    /// Serve /metrics for Prometheus, and the probes, on an address of their own [default without a value:
    /// 127.0.0.1:4446]
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, default_missing_value = METRICS_ADDRESS)]
    pub metrics_listen: Option<SocketAddr>,
    /// Seconds that open requests get to finish after SIGTERM
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u64).range(0..=3600))]
    pub drain_timeout: u64,
    /// Do not serve the page to browsers at GET /
    #[arg(long)]
    pub no_page: bool,
    /// Let the page ask this Sourcify server for the functions of contracts, which it marks as not proven; without it the page
    /// asks no other server
    #[arg(long, value_name = "URL", conflicts_with = "no_page")]
    pub sourcify: Option<SourcifyAddress>,
}

/// Parses an octal mode.
fn mode(text: &str) -> Result<u32, &'static str> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or("must be an octal number up to 777, such as 660")
}

impl OperationArgs {
    /// The settings that these flags describe. `main`, the address of `--http-port`, is listened on besides those of `--listen`.
    pub(super) fn settings(&self, main: Option<Listen>) -> Operations {
        let files = self.tls_cert.clone().zip(self.tls_key.clone());
        Operations {
            listen: main.into_iter().chain(self.listen.iter().cloned()).collect(),
            unix_mode: self.unix_mode,
            tls: files.map(|(certificate, key)| TlsFiles { certificate, key }),
            proxies: self.proxies(),
            metrics: self.metrics_listen,
            page: (!self.no_page).then(Page::embedded),
            sourcify: self.sourcify.clone(),
        }
    }

    /// The proxies whose headers count.
    pub(super) fn proxies(&self) -> Proxies {
        self.trusted_proxy.iter().copied().collect()
    }

    /// How long open requests may continue after a stop signal.
    pub(super) fn drain(&self) -> Duration {
        Duration::from_secs(self.drain_timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_octal_and_have_no_special_bits() {
        assert_eq!((mode("660"), mode("0600")), (Ok(0o660), Ok(0o600)));
        for bad in ["", "8", "1777", "rw", "-1"] {
            assert!(mode(bad).is_err(), "{bad}");
        }
    }
}
