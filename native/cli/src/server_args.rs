//! Flags of a JSON-RPC server, which several commands share; [`ServerArgs::config`] makes the server's configuration of them.

use clap::Args;
use clap::builder::{RangedU64ValueParser, TypedValueParser};
use rootlight::rpc::envelope::{BATCH_LIMIT, MAX_BATCH};
use rootlight_server::{AdmissionRules, Listen, Origins, ServerConfig, ServerLimits, names};

use super::admission::AdmissionArgs;
use super::operations::OperationArgs;

/// Port of the reference node's HTTP server.
const HTTP_PORT: u16 = 4444;
/// Port of the reference node's WebSocket server.
const WS_PORT: u16 = 4445;

/// Flags of the server.
#[derive(Debug, Clone, Args)]
pub struct ServerArgs {
    /// Port for HTTP and WebSocket; 0 picks a free one
    #[arg(long, value_name = "N")]
    pub http_port: Option<u16>,
    /// Another port for WebSocket [default: 4445; none if --http-port is given]
    #[arg(long, value_name = "N")]
    pub ws_port: Option<u16>,
    /// Address to listen on
    #[arg(long, value_name = "H", default_value = "127.0.0.1")]
    pub host: String,
    /// Host names, separated by commas (* for all), that requests may be addressed to besides localhost and IP
    /// addresses
    #[arg(long, value_name = "LIST", default_value = "", hide_default_value = true)]
    pub allow_host: String,
    /// Origins of web pages, separated by commas (* for all), that may call every method. Pages of other
    /// origins may then call no method; pages from this machine may always call every method [default: pages
    /// of other origins may call methods that use no keys and do not change the chain by hand]
    #[arg(long, value_name = "LIST", value_parser = origins)]
    pub cors: Option<String>,
    /// Most calls of one batch. All calls of a batch together have the time of one message, and results of 10 MiB
    #[arg(long, value_name = "N", default_value_t = BATCH_LIMIT, value_parser = batch_limit())]
    pub batch_limit: usize,
    /// Flags that decide which requests are admitted.
    #[command(flatten)]
    pub admission: AdmissionArgs,
    /// Flags for operators.
    #[command(flatten)]
    pub operations: OperationArgs,
}

/// Checks a list of origins. An entry of another form would match no page, because browsers send no such origin.
fn origins(text: &str) -> Result<String, String> {
    let is_origin = |name: &String| {
        let host = name.split_once("://").map(|(_, host)| host);
        name == "*"
            || name == "null"
            || host.is_some_and(|host| !host.is_empty() && !host.contains(['/', '?', '#', '@']))
    };
    match names(text).iter().position(|name| !is_origin(name)) {
        None => Ok(text.to_owned()),
        Some(at) => Err(format!(
            "entry {} is no origin as browsers send it, SCHEME://HOST or SCHEME://HOST:PORT without a path, nor * or null",
            at.saturating_add(1)
        )),
    }
}

/// Reads a number of calls from 1 to [`MAX_BATCH`].
fn batch_limit() -> impl TypedValueParser<Value = usize> {
    RangedU64ValueParser::<usize>::new().range(1..=MAX_BATCH as u64)
}

impl ServerArgs {
    /// The web pages that may call.
    pub(super) fn origins(&self) -> Origins {
        self.cors.as_deref().map_or(Origins::Unnamed, Origins::parse)
    }

    /// The host names that requests may be addressed to.
    pub(super) fn hosts(&self) -> Vec<String> {
        names(&self.allow_host)
    }

    /// Returns the server configuration that these flags describe, with these rules of admission.
    #[must_use]
    pub fn config(&self, admission: AdmissionRules) -> ServerConfig {
        let port_listener = self.http_port.map(|port| Listen::Tcp(self.host.clone(), port));
        let operations = self.operations.settings(port_listener);
        ServerConfig {
            host: self.host.clone(),
            http_port: self.http_port.unwrap_or(HTTP_PORT),
            // A user who chooses the HTTP port, or lets the system pick one, does not expect a second fixed
            // port.
            ws_port: self.ws_port.or(operations.listen.is_empty().then_some(WS_PORT)),
            origins: self.origins(),
            hosts: self.hosts(),
            limits: ServerLimits {
                batch: self.batch_limit,
                drain_timeout: self.operations.drain(),
                ..ServerLimits::default()
            },
            admission,
            operations,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        server: ServerArgs,
    }

    #[test]
    fn the_limit_of_batches_is_a_flag_with_bounds() {
        let limit = |arguments: &[&str]| {
            let flags = Flags::try_parse_from(["rootlight"].iter().chain(arguments));
            flags.ok().map(|flags| flags.server.config(AdmissionRules::default()).limits.batch)
        };
        assert_eq!(limit(&[]), Some(1_000));
        assert_eq!(limit(&["--batch-limit", "50"]), Some(50));
        assert_eq!(limit(&["--batch-limit", "10000"]), Some(10_000));
        assert!(["0", "10001", "-1", "x"].iter().all(|bad| limit(&["--batch-limit", bad]).is_none()));
    }
}
