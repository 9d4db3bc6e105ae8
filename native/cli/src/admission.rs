//! Flags of who may enter: profile, base path and API keys.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use rootlight_server::keys::{self, KeyError, Registry};
use rootlight_server::methods::Profile;
use rootlight_server::{AdmissionRules, KeyAccess};

use super::error::CommandError;

/// How often, and after which pause, a database of keys that another process has open is tried again. `rootlight keys`
/// has it open for some milliseconds.
pub(super) const TRIES: u32 = 20;
pub(super) const PAUSE: Duration = Duration::from_millis(50);

/// Flags of who may enter.
#[derive(Debug, Clone, Args)]
pub struct AdmissionArgs {
    /// node serves every method of the chain; hosted is for a public service: no methods that hold keys, mine,
    /// control the chain or inspect the node, eth_accounts is empty, trace_filter covers 2000 blocks and gives
    /// 100 traces
    #[arg(long, value_name = "node|hosted", default_value = "node", value_parser = profile())]
    pub profile: Profile,
    /// Path below which the service is, such as /v1
    #[arg(long, value_name = "P", default_value = "", hide_default_value = true, value_parser = base_path)]
    pub base_path: String,
    /// Require API keys of this database (see `rootlight keys`); it is created if needed. Clients put the key
    /// into the path: /KEY for HTTP and WebSocket
    #[arg(long, value_name = "FILE")]
    pub api_keys: Option<PathBuf>,
    /// With --api-keys: serve clients of this machine without a key. Not behind a proxy on this machine, whose
    /// clients all seem to be of this machine
    #[arg(long, requires = "api_keys")]
    pub anonymous: bool,
    /// Whether programs of this machine without a key are the operator, who may use sco_* [default: on under the
    /// profile node, if no proxy is trusted]. Off if a proxy on this machine passes on requests of others
    #[arg(long, value_name = "on|off", value_parser = switch())]
    pub local_operator: Option<bool>,
}

fn switch() -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new(["on", "off"]).map(|word| word == "on")
}

fn profile() -> impl TypedValueParser<Value = Profile> {
    PossibleValuesParser::new(Profile::ALL.map(Profile::name)).try_map(|name| {
        Profile::ALL.into_iter().find(|profile| profile.name() == name).ok_or("no profile has this name")
    })
}

/// Checks a base path; removes the slash at its end.
fn base_path(text: &str) -> Result<String, &'static str> {
    let path = text.trim_end_matches('/');
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    if path.is_empty() {
        return Ok(String::new());
    }
    if !path.starts_with('/') || path.contains("//") || !path.bytes().all(plain) {
        return Err("a base path starts with / and has letters, digits and -._~ only");
    }
    Ok(path.to_owned())
}

/// The rules that the flags describe, and the keys' database if there is one.
#[derive(Debug)]
pub struct OpenedAdmission {
    /// The rules of the server.
    pub rules: AdmissionRules,
    registry: Option<Arc<Registry>>,
}

impl OpenedAdmission {
    /// Starts the work that goes on beside a server with keys; must be called inside a runtime.
    pub(super) fn start(&self) -> Result<Option<keys::KeyTasks>, CommandError> {
        let start = |registry: &Arc<Registry>| keys::start(registry.clone()).map_err(CommandError::failed);
        self.registry.as_ref().map(start).transpose()
    }
}

impl AdmissionArgs {
    /// Whether others than the operator are served.
    pub(super) fn is_for_others(&self) -> bool {
        self.profile == Profile::Hosted || self.api_keys.is_some()
    }

    /// Opens what the flags describe.
    ///
    /// # Errors
    /// The database of keys cannot be opened.
    pub fn open(&self) -> Result<OpenedAdmission, CommandError> {
        let registry = self.api_keys.as_deref().map(open_keys).transpose()?.map(Arc::new);
        let keys = registry
            .as_ref()
            .map(|registry| KeyAccess { anonymous: self.anonymous, ..KeyAccess::embedded(registry) });
        let (profile, local_operator) = (self.profile, self.local_operator);
        let rules = AdmissionRules { profile, base_path: self.base_path.clone(), keys, local_operator };
        Ok(OpenedAdmission { rules, registry })
    }
}

/// An error of a database of keys, which names the flag and the file once.
pub(super) fn keys_text(path: &Path, error: &KeyError) -> String {
    match error {
        KeyError::File { .. } | KeyError::NoAnswer { .. } => format!("--api-keys {error}"),
        other => format!("--api-keys {}: {other}", path.display()),
    }
}

fn open_keys(path: &Path) -> Result<Registry, CommandError> {
    let mut opened = Registry::open(path);
    for _ in 0..TRIES {
        if !matches!(opened, Err(KeyError::InUse)) {
            break;
        }
        std::thread::sleep(PAUSE);
        opened = Registry::open(path);
    }
    opened.map_err(|error| {
        let advice = match error {
            KeyError::InUse => {
                "; end that server, or run several with `rootlight serve`, whose servers share their keys"
            }
            _ => "",
        };
        CommandError::Failed(format!("{}{advice}", keys_text(path, &error)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_path_is_a_plain_absolute_path() {
        for (given, kept) in
            [("", ""), ("/", ""), ("/v1", "/v1"), ("/v1/", "/v1"), ("/a/b-c_d.e~f", "/a/b-c_d.e~f")]
        {
            assert_eq!(base_path(given).as_deref(), Ok(kept), "{given}");
        }
        for bad in ["v1", "/a//b", "/a b", "/%41", "/a?b", "/ä"] {
            assert!(base_path(bad).is_err(), "{bad}");
        }
    }
}
