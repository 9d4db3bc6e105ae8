//! `rootlight keys`: the flags of the command, and its actions on the key database of one server. `cluster_keys.rs` has the same
//! actions for a service on many machines.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use rootlight_limits::sanitize::cell;
use rootlight_limits::unix_time::unix_time;
use rootlight_server::keys::{Command, CommandReply, KeyChange, KeyDatabase, KeyError, KeySummary};

use super::admission::{KEY_DATABASE_PAUSE, KEY_DATABASE_TRIES, keys_text};
use super::error::CommandError;
use super::print::say;
use super::utc::utc;

/// Flags of `keys`.
#[derive(Debug, Args)]
#[command(after_help = KEYS_HELP)]
pub struct KeysArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: KeysAction,
    /// The database of keys, as the server's --api-keys
    #[arg(long, value_name = "FILE", global = true)]
    pub api_keys: Option<PathBuf>,
    /// Instead of --api-keys, for a service on many machines: the database, as the servers' --index
    #[cfg(feature = "cluster")]
    #[arg(long, value_name = "URL", global = true, conflicts_with = "api_keys", hide_env_values = true)]
    pub index: Option<String>,
    /// With --index: the store, as the servers' --cluster; repeat the flag for several of its nodes
    #[cfg(feature = "cluster")]
    #[arg(long, value_name = "URL", global = true, conflicts_with = "api_keys", hide_env_values = true)]
    pub cluster: Vec<String>,
}

const KEYS_HELP: &str = "\
Examples:
  rootlight keys create --api-keys keys.redb --name shop --rps 20 --per-day 25000
  rootlight light --upstream https://node.example/KEY --api-keys keys.redb --profile hosted
  rootlight keys list --api-keys keys.redb
  rootlight keys limit ID --api-keys keys.redb --methods 'eth_*,net_version'
  rootlight keys revoke ID --api-keys keys.redb
  rootlight keys list --limit 100 --cluster redis://store.example --index postgres://me:word@db.example/service

Clients put the whole key into the path: http://127.0.0.1:4444/KEY and ws://127.0.0.1:4444/KEY. The commands
work while the server runs, and take effect at once.";

/// What to do with keys.
#[derive(Debug, Subcommand)]
pub enum KeysAction {
    /// Make a key and print it; it is shown this once
    Create {
        /// The limits of the new key.
        #[command(flatten)]
        limits: LimitArgs,
    },
    /// List the keys with their limits and what they have been used for
    List {
        /// Print the list as JSON
        #[arg(long)]
        json: bool,
        /// List at most so many keys
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        limit: Option<u32>,
        /// List the keys that were made after the one with this id
        #[arg(long, value_name = "ID")]
        after: Option<String>,
    },
    /// Revoke a key, for good; its open WebSockets are closed
    Revoke {
        /// The id of the key: its part before the dot
        id: String,
    },
    /// Change the limits that are given, and leave the others
    Limit {
        /// The id of the key: its part before the dot
        id: String,
        /// The new limits.
        #[command(flatten)]
        limits: LimitArgs,
    },
}

/// Limits of a key. Without a flag there is no limit.
#[derive(Debug, Clone, Args)]
pub struct LimitArgs {
    /// What you call the key
    #[arg(long, value_name = "N")]
    pub name: Option<String>,
    /// Requests per second; 0 for no limit. A method counts as one request, and as one more for each further 20 of its
    /// cost in `rootlight methods --json`
    #[arg(long, value_name = "N")]
    pub rps: Option<u32>,
    /// Requests that may come at once [default: those of two seconds]
    #[arg(long, value_name = "N")]
    pub burst: Option<u32>,
    /// Requests per day (UTC); 0 for no limit
    #[arg(long, value_name = "N")]
    pub per_day: Option<u64>,
    /// Methods that may be called, separated by commas; eth_* stands for all that begin so; '' for all
    #[arg(long, value_name = "LIST")]
    pub methods: Option<String>,
    /// Contracts that may be called, to which transactions may be sent, and whose logs, traces, code and storage may be
    /// read, separated by commas; '' for all
    #[arg(long, value_name = "LIST")]
    pub contracts: Option<String>,
    /// Origins of web pages that may use the key, separated by commas; '' for all, and for programs
    #[arg(long, value_name = "LIST")]
    pub origins: Option<String>,
    /// Addresses of clients, or networks such as 10.0.0.0/8, separated by commas; '' for all
    #[arg(long, value_name = "LIST")]
    pub addresses: Option<String>,
    /// Whether eth_call may override state [default: off]
    #[arg(long, value_name = "on|off", value_enum, num_args = 0..=1, default_missing_value = "on")]
    pub state_override: Option<Switch>,
    /// Whether the hosted profile has the debug_ methods for the key, such as traces of blocks [default: off]
    #[arg(long, value_name = "on|off", value_enum, num_args = 0..=1, default_missing_value = "on")]
    pub debug: Option<Switch>,
    /// Whether the key is one of the operator, who may ban addresses and see reputations (sco_*) [default: off]
    #[arg(long, value_name = "on|off", value_enum, num_args = 0..=1, default_missing_value = "on")]
    pub operator: Option<Switch>,
    /// When the key ends: after a time such as 90d, 12h or 30m, or at a number of seconds since 1970; never
    #[arg(long, value_name = "WHEN", value_parser = parse_expiry)]
    pub expires: Option<u64>,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Allowed.
    On,
    /// Not allowed.
    Off,
}

/// Parses the time at which a key ends, in seconds since 1970; 0 stands for never.
fn parse_expiry(text: &str) -> Result<u64, &'static str> {
    let now = unix_time();
    let wrong = "give a time such as 90d, 12h or 30m, a number of seconds since 1970, or never";
    let unit = match text.chars().last() {
        _ if text == "never" => return Ok(0),
        Some('d') => 86_400,
        Some('h') => 3_600,
        Some('m') => 60,
        Some('s') => 1,
        _ => {
            return text
                .parse()
                .map_err(|_| wrong)
                .and_then(|at| if at > now { Ok(at) } else { Err("that time has passed") });
        }
    };
    let count: u64 =
        text.get(..text.len().saturating_sub(1)).unwrap_or_default().parse().map_err(|_| wrong)?;
    Ok(now.saturating_add(count.saturating_mul(unit)))
}

impl LimitArgs {
    /// The change of limits that these flags describe; a flag that is not given changes nothing.
    pub(super) fn change(self) -> KeyChange {
        KeyChange {
            name: self.name,
            per_second: self.rps,
            burst: self.burst,
            per_day: self.per_day,
            methods: self.methods,
            contracts: self.contracts,
            origins: self.origins,
            addresses: self.addresses,
            state_override: self.state_override.map(|switch| switch == Switch::On),
            debug: self.debug.map(|switch| switch == Switch::On),
            operator: self.operator.map(|switch| switch == Switch::On),
            expires: self.expires,
        }
    }
}

/// Runs the command on the database of `--api-keys`.
pub(super) fn run(args: KeysArgs) -> Result<(), CommandError> {
    let usage = || {
        CommandError::Usage(
            "name the database of keys: --api-keys FILE, or --index URL of a service".to_owned(),
        )
    };
    let path = args.api_keys.ok_or_else(usage)?;
    let (mut as_json, mut most, mut after_id) = (false, None, None);
    let command = match args.action {
        KeysAction::Create { limits } => Command::Create { change: limits.change() },
        KeysAction::List { json, limit, after } => {
            (as_json, most, after_id) = (json, limit, after);
            Command::List
        }
        KeysAction::Revoke { id } => Command::Revoke { id },
        KeysAction::Limit { id, limits } => Command::Limit { id, change: limits.change() },
    };
    match send_command(&path, &command).map_err(|error| command_error(&path, error))? {
        CommandReply::Created { key } => say!("{key}"),
        CommandReply::Keys(keys) => {
            let keys = page(keys, most, after_id).map_err(|error| command_error(&path, error))?;
            match as_json {
                true => say!("{}", serde_json::to_string_pretty(&keys).map_err(CommandError::failed)?),
                false => keys.iter().for_each(print),
            }
        }
        CommandReply::Changed(key) => print(&key),
        CommandReply::Failed(reason) => return Err(CommandError::Failed(reason)),
    }
    Ok(())
}

/// At most `most` keys, beginning behind the key with the id `after`.
fn page(
    keys: Vec<KeySummary>,
    most: Option<u32>,
    after: Option<String>,
) -> Result<Vec<KeySummary>, KeyError> {
    let skipped = match after {
        None => 0,
        Some(id) => {
            let at = keys.iter().position(|key| key.id == id);
            at.ok_or(KeyError::Unknown(id))?.saturating_add(1)
        }
    };
    let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    Ok(keys.into_iter().skip(skipped).take(most).collect())
}

fn command_error(path: &Path, error: KeyError) -> CommandError {
    match error {
        KeyError::Invalid(reason) => CommandError::Usage(reason),
        other => CommandError::Failed(keys_text(path, &other)),
    }
}

/// Runs a command on the database. If a server has the database open, the server runs the command.
fn send_command(path: &Path, command: &Command) -> Result<CommandReply, KeyError> {
    let creates = matches!(command, Command::Create { .. });
    if !creates && !path.exists() {
        return Err(KeyError::File { path: path.to_owned(), source: std::io::ErrorKind::NotFound.into() });
    }
    let mut reply = send_command_once(path, command);
    for _ in 0..KEY_DATABASE_TRIES {
        // Another command may have the database open, or a server that is starting or stopping.
        if !matches!(reply, Err(KeyError::InUse | KeyError::NoAnswer { .. })) {
            break;
        }
        std::thread::sleep(KEY_DATABASE_PAUSE);
        reply = send_command_once(path, command);
    }
    reply
}

/// Runs a command as [`send_command`] does, without a second try.
fn send_command_once(path: &Path, command: &Command) -> Result<CommandReply, KeyError> {
    match KeyDatabase::open(path) {
        Ok(database) => command.run(&database),
        #[cfg(unix)]
        Err(KeyError::InUse) => rootlight_server::keys::ask(path, command),
        Err(error) => Err(error),
    }
}

/// Prints a key in a few lines.
pub(super) fn print(key: &KeySummary) {
    let state = match (key.revoked, key.rules.expires) {
        (Some(at), _) => format!("revoked at {}", utc(at)),
        (None, Some(at)) => format!("until {}", utc(at)),
        (None, None) => "valid".to_owned(),
    };
    let name = cell(if key.name.is_empty() { "-" } else { &key.name });
    say!("{}  {name}  made {}, {state}", cell(&key.id), utc(key.created));
    say!("    limits: {}", limits(key));
    let usage = &key.usage;
    let classes: Vec<String> =
        usage.classes.iter().map(|(class, count)| format!("{} {count}", cell(class))).collect();
    say!(
        "    used: {} requests ({} today), weight {}, {} messages refused{}{}",
        usage.requests,
        usage.today,
        usage.weight,
        usage.refused,
        if classes.is_empty() { "" } else { "; " },
        classes.join(", ")
    );
}

/// The limits of a key in words.
fn limits(key: &KeySummary) -> String {
    let rules = &key.rules;
    let mut parts = Vec::new();
    if let Some(rate) = rules.per_second {
        parts.push(format!("{rate} a second, {} at once", rules.burst()));
    }
    parts.extend(rules.per_day.map(|requests| format!("{requests} a day")));
    let mut list = |what: &str, entries: Vec<String>| {
        let entries: Vec<String> = entries.iter().map(|entry| cell(entry).to_string()).collect();
        if !entries.is_empty() {
            parts.push(format!("{what} {}", entries.join(",")));
        }
    };
    list("methods", rules.methods.clone());
    list("contracts", rules.contracts.iter().map(ToString::to_string).collect());
    list("origins", rules.origins.clone());
    list("addresses", rules.addresses.iter().map(ToString::to_string).collect());
    if rules.state_override {
        parts.push("state override".to_owned());
    }
    if rules.debug {
        parts.push("debug".to_owned());
    }
    if rules.operator {
        parts.push("operator".to_owned());
    }
    if parts.is_empty() { "none".to_owned() } else { parts.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_key_is_a_time_from_now_or_a_moment() {
        let now = unix_time();
        let after = |text: &str| parse_expiry(text).unwrap() - now;
        assert!((86_400..86_402).contains(&after("1d")) && (7_200..7_202).contains(&after("2h")));
        assert_eq!((parse_expiry("never"), parse_expiry("4102444800")), (Ok(0), Ok(4_102_444_800)));
        for bad in ["", "d", "1w", "-1d", "tomorrow", "1000000000", "ä"] {
            assert!(parse_expiry(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_expiry("99999999999999999999d").ok(), None);
    }
}
