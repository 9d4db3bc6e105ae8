//! Flags that decide which requests a server admits: profile, base path and API keys. [`AdmissionArgs::open`] makes the
//! server's [`AdmissionRules`] of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use rootlight_server::keys::{self, KeyDatabase, KeyError};
use rootlight_server::methods::Profile;
use rootlight_server::{AdmissionRules, KeyAccess};

use super::error::CommandError;

/// How often opening a key database is tried again while another process has the database open. `rootlight keys` has the
/// database open for some milliseconds.
pub(super) const KEY_DATABASE_TRIES: u32 = 20;
/// Pause before each further try to open a key database.
pub(super) const KEY_DATABASE_PAUSE: Duration = Duration::from_millis(50);

/// Flags that decide which requests a server admits.
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

/// Checks a base path, and removes the slashes at its end.
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

/// The rules that the flags describe, and the key database if `--api-keys` names one.
#[derive(Debug)]
pub struct OpenedAdmission {
    /// The rules of the server.
    pub rules: AdmissionRules,
    /// The open key database; `None` without `--api-keys`.
    database: Option<Arc<KeyDatabase>>,
}

impl OpenedAdmission {
    /// Starts the background tasks of the key database, such as its control socket; `None` without a database. Must be called
    /// inside a runtime.
    pub(super) fn start(&self) -> Result<Option<keys::KeyTasks>, CommandError> {
        let start = |database: &Arc<KeyDatabase>| keys::start(database.clone()).map_err(CommandError::failed);
        self.database.as_ref().map(start).transpose()
    }
}

impl AdmissionArgs {
    /// Whether the server is for other callers than the operator.
    pub(super) fn is_for_others(&self) -> bool {
        self.profile == Profile::Hosted || self.api_keys.is_some()
    }

    /// Opens what the flags describe.
    ///
    /// # Errors
    /// The database of keys cannot be opened.
    pub fn open(&self) -> Result<OpenedAdmission, CommandError> {
        let database = self.api_keys.as_deref().map(open_keys).transpose()?.map(Arc::new);
        let keys = database
            .as_ref()
            .map(|database| KeyAccess { anonymous: self.anonymous, ..KeyAccess::embedded(database) });
        let (profile, local_operator) = (self.profile, self.local_operator);
        let rules = AdmissionRules { profile, base_path: self.base_path.clone(), keys, local_operator };
        Ok(OpenedAdmission { rules, database })
    }
}

/// The text of an error of a key database, with the flag and the file. Some errors already name the file.
pub(super) fn keys_text(path: &Path, error: &KeyError) -> String {
    match error {
        KeyError::File { .. } | KeyError::NoAnswer { .. } => format!("--api-keys {error}"),
        other => format!("--api-keys {}: {other}", path.display()),
    }
}

/// Opens the key database; waits for a short time while another process has the database open.
fn open_keys(path: &Path) -> Result<KeyDatabase, CommandError> {
    let mut opened = KeyDatabase::open(path);
    for _ in 0..KEY_DATABASE_TRIES {
        if !matches!(opened, Err(KeyError::InUse)) {
            break;
        }
        std::thread::sleep(KEY_DATABASE_PAUSE);
        opened = KeyDatabase::open(path);
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
