//! The rules of an API key: its rights and limits, and changes of them.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::LazyLock;

use alloy_primitives::{Address, keccak256};
use ipnet::IpNet;
use rootlight::rpc::Method;
use serde::{Deserialize, Serialize};

use super::error::KeyError;
use crate::addresses;
use crate::methods::{dispatcher, methods};

/// Most entries of a list of a key: methods, contracts, origins or addresses. Each request is compared with them.
pub const MAX_ENTRIES: usize = 1_000;

/// Longest entry of a list, and longest name of a key, in bytes.
const MAX_TEXT: usize = 200;

/// Highest requests per second and highest burst of a key. A server answers far fewer, so that a higher limit would be none.
const MAX_RATE: u32 = 1_000_000;

/// The limits of a key. An empty list and `None` allow everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct KeyRules {
    /// Requests per second. A method weighs one request, and one more for each further 20 of the cost in its row of the method
    /// table.
    pub per_second: Option<u32>,
    /// Requests that may come at once; by default those of two seconds.
    pub burst: Option<u32>,
    /// Requests of one day (UTC), whatever they weigh.
    pub per_day: Option<u64>,
    /// Methods by name or alias; `eth_*` stands for all methods of a namespace.
    pub methods: Vec<String>,
    /// Contracts that may be called, to which transactions may be sent, and whose logs, traces, code and storage may be read.
    pub contracts: Vec<Address>,
    /// Origins of web pages, in lower case. Requests without an origin are refused if there are any.
    pub origins: Vec<String>,
    /// Addresses and networks of clients that may use the key. The whole address of a client is compared, not only its /64 network.
    pub addresses: Vec<IpNet>,
    /// Whether calls may override state.
    pub state_override: bool,
    /// Whether the hosted profile has the `debug_` methods for the key.
    pub debug: bool,
    /// Whether the key is one of the operator, who may see and change bans (`sco_*`).
    pub operator: bool,
    /// Time at which the key ends, in seconds since 1970.
    pub expires: Option<u64>,
}

impl KeyRules {
    /// Requests that may come at once.
    #[must_use]
    pub fn burst(&self) -> u32 {
        self.burst.unwrap_or_else(|| self.per_second.unwrap_or(0).saturating_mul(2)).max(1)
    }

    /// A hash of what the key may ask about: its methods, contracts, overrides and traces. Filters and subscriptions remember
    /// this number: a filter that was installed under other rights does not exist for the key.
    #[must_use]
    pub fn rights(&self) -> u64 {
        // Each request needs the hash, and most keys have no lists, so that the four hashes without lists are computed once.
        static WITHOUT_LISTS: LazyLock<[[u64; 2]; 2]> = LazyLock::new(|| {
            [false, true].map(|debug| {
                [false, true].map(|state_override| {
                    KeyRules { state_override, debug, ..KeyRules::default() }.hashed_rights()
                })
            })
        });
        if !self.contracts.is_empty() || !self.methods.is_empty() {
            return self.hashed_rights();
        }
        let [without_debug, with_debug] = *WITHOUT_LISTS;
        let [without, with] = if self.debug { with_debug } else { without_debug };
        if self.state_override { with } else { without }
    }

    /// Computes the hash of [`Self::rights`].
    fn hashed_rights(&self) -> u64 {
        let mut text = format!("{}{}", self.state_override, if self.debug { " debug" } else { "" });
        let contracts = self.contracts.iter().map(|contract| format!(" {contract}"));
        let methods = self.methods.iter().map(|method| format!(" {method}"));
        // The order of a list, and an entry that it has twice, give no other rights.
        text.extend(contracts.chain(methods).collect::<BTreeSet<_>>());
        keccak256(text).first_chunk().map_or(0, |half| u64::from_be_bytes(*half))
    }

    /// Whether these rules lack a right that the rules before (`others`) gave: a method, a contract, overrides, or traces.
    #[must_use]
    pub(crate) fn take_from(&self, others: &Self) -> bool {
        fn lacks<T: PartialEq>(now: &[T], before: &[T]) -> bool {
            !now.is_empty() && (before.is_empty() || before.iter().any(|entry| !now.contains(entry)))
        }
        lacks(&self.methods, &others.methods)
            || lacks(&self.contracts, &others.contracts)
            || (others.state_override && !self.state_override)
            || (others.debug && !self.debug)
    }

    /// Whether the key has ended at `now` (seconds since 1970).
    #[must_use]
    pub fn is_over(&self, now: u64) -> bool {
        self.expires.is_some_and(|end| end <= now)
    }

    /// Whether a client of this address may use the key.
    #[must_use]
    pub fn admits(&self, address: IpAddr) -> bool {
        self.addresses.is_empty() || self.addresses.iter().any(|net| addresses::has(net, address))
    }

    /// Whether a request with this `Origin` header may use the key.
    #[must_use]
    pub(crate) fn admits_page(&self, origin: Option<&str>) -> bool {
        let listed = |origin: &str| self.origins.iter().any(|known| known.eq_ignore_ascii_case(origin));
        self.origins.is_empty() || origin.is_some_and(listed)
    }

    /// Whether a method may be called by this name.
    #[must_use]
    pub fn allows(&self, name: &str, row: Option<&Method>) -> bool {
        let names = || {
            let row = row.into_iter().flat_map(|row| std::iter::once(&row.name).chain(row.aliases));
            std::iter::once(name).chain(row.copied())
        };
        let matches = |pattern: &String| match pattern.strip_suffix('*') {
            Some(prefix) => names().any(|name| name.starts_with(prefix)),
            None => names().any(|name| name == pattern),
        };
        self.methods.is_empty() || self.methods.iter().any(matches)
    }
}

/// A change of a key's name and limits. `None` leaves a value as it is. A JSON member that does not exist is refused, because a
/// limit with a misspelt name would silently be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct KeyChange {
    /// The name.
    pub name: Option<String>,
    /// Requests per second; 0 removes the limit.
    pub per_second: Option<u32>,
    /// Requests at once; 0 stands for those of two seconds.
    pub burst: Option<u32>,
    /// Requests of one day; 0 removes the limit.
    pub per_day: Option<u64>,
    /// Methods, separated by commas; an empty text allows all.
    pub methods: Option<String>,
    /// Contracts, separated by commas; an empty text allows all.
    pub contracts: Option<String>,
    /// Origins, separated by commas; an empty text allows all.
    pub origins: Option<String>,
    /// Addresses and networks of clients, separated by commas; an empty text allows all.
    pub addresses: Option<String>,
    /// Whether calls may override state.
    pub state_override: Option<bool>,
    /// Whether the hosted profile has the `debug_` methods for the key.
    pub debug: Option<bool>,
    /// Whether the key is one of the operator.
    pub operator: Option<bool>,
    /// Time at which the key ends, in seconds since 1970; 0 stands for never.
    pub expires: Option<u64>,
}

impl KeyChange {
    /// Applies the change to a key's name and limits.
    ///
    /// # Errors
    /// [`KeyError::Invalid`] says which value cannot be used. Nothing is changed then.
    pub fn apply(&self, name: &mut String, rules: &mut KeyRules) -> Result<(), KeyError> {
        let mut new = rules.clone();
        let nonzero = |value: u64| Some(value).filter(|value| *value > 0);
        if let Some(rate) = self.per_second {
            new.per_second = Some(limited("rps", rate)?).filter(|rate| *rate > 0);
        }
        if let Some(burst) = self.burst {
            new.burst = Some(limited("burst", burst)?).filter(|burst| *burst > 0);
        }
        if let Some(requests) = self.per_day {
            new.per_day = nonzero(requests);
        }
        if let Some(text) = &self.methods {
            new.methods = list("methods", text, method)?;
        }
        if let Some(text) = &self.contracts {
            new.contracts = list("contracts", text, |entry| entry.parse().ok())?;
        }
        if let Some(text) = &self.origins {
            new.origins = list("origins", text, |entry| Some(entry.to_ascii_lowercase()))?;
        }
        if let Some(text) = &self.addresses {
            new.addresses = list("addresses", text, network)?;
        }
        if let Some(allowed) = self.state_override {
            new.state_override = allowed;
        }
        if let Some(allowed) = self.debug {
            new.debug = allowed;
        }
        if let Some(operator) = self.operator {
            new.operator = operator;
        }
        if let Some(end) = self.expires {
            new.expires = nonzero(end);
        }
        if let Some(text) = &self.name {
            if text.len() > MAX_TEXT || text.chars().any(char::is_control) {
                let reason = format!("name: at most {MAX_TEXT} bytes without control characters");
                return Err(KeyError::Invalid(reason));
            }
            name.clone_from(text);
        }
        *rules = new;
        Ok(())
    }
}

/// Checks a rate against [`MAX_RATE`]. `what` is the option's name in the error.
fn limited(what: &str, rate: u32) -> Result<u32, KeyError> {
    if rate > MAX_RATE {
        return Err(KeyError::Invalid(format!("{what}: at most {MAX_RATE}, or 0 for no limit")));
    }
    Ok(rate)
}

/// The entries of a list separated by commas, each parsed by `read`. `what` is the option's name in the error.
fn list<T>(what: &str, text: &str, read: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, KeyError> {
    let entries: Vec<&str> = text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).collect();
    if entries.len() > MAX_ENTRIES {
        return Err(KeyError::Invalid(format!("{what}: at most {MAX_ENTRIES} entries")));
    }
    let read = |entry: &&str| {
        let short = entry.len() <= MAX_TEXT && !entry.chars().any(char::is_control);
        let shown = || entry.chars().take(MAX_TEXT).filter(|c| !c.is_control()).collect::<String>();
        let value = if short { read(entry) } else { None };
        value.ok_or_else(|| KeyError::Invalid(format!("{what}: {:?} is not one", shown())))
    };
    entries.iter().map(read).collect()
}

/// Checks an entry of a list of methods: a name or alias in the method table, or `NAMESPACE_*`.
fn method(entry: &str) -> Option<String> {
    let known = match entry.strip_suffix("_*") {
        Some(namespace) => {
            let of = |name: &str| name.split_once('_').is_some_and(|(space, _)| space == namespace);
            methods().any(|row| of(row.name) || row.aliases.iter().any(|name| of(name)))
        }
        None => dispatcher().find(entry).is_some(),
    };
    known.then(|| entry.to_owned())
}

/// Parses a network, or a single address.
fn network(entry: &str) -> Option<IpNet> {
    entry.parse().ok().or_else(|| entry.parse::<IpAddr>().ok().map(|address| address.to_canonical().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(change: &KeyChange) -> Result<KeyRules, KeyError> {
        let (mut name, mut rules) = (String::new(), KeyRules::default());
        change.apply(&mut name, &mut rules).map(|()| rules)
    }

    #[test]
    fn a_change_sets_what_it_names_and_zero_or_empty_removes_a_limit() {
        let change = KeyChange {
            name: Some("shop".into()),
            per_second: Some(5),
            per_day: Some(100),
            methods: Some("eth_call, net_*".into()),
            origins: Some("https://A.example".into()),
            expires: Some(10),
            ..KeyChange::default()
        };
        let (mut name, mut rules) = (String::new(), KeyRules::default());
        change.apply(&mut name, &mut rules).unwrap();
        assert_eq!((name.as_str(), rules.per_second, rules.burst()), ("shop", Some(5), 10));
        assert_eq!(rules.origins, ["https://a.example"]);
        assert!(rules.is_over(10) && !rules.is_over(9));
        let removal = KeyChange {
            per_second: Some(0),
            per_day: Some(0),
            methods: Some(String::new()),
            origins: Some(" , ".into()),
            expires: Some(0),
            ..KeyChange::default()
        };
        removal.apply(&mut name, &mut rules).unwrap();
        assert_eq!((name.as_str(), rules), ("shop", KeyRules::default()));
    }

    #[test]
    fn values_that_cannot_be_used_are_refused_and_change_nothing() {
        let long = "x,".repeat(MAX_ENTRIES + 1);
        for change in [
            KeyChange { methods: Some("eth_cal".into()), ..KeyChange::default() },
            KeyChange { methods: Some("nope_*".into()), ..KeyChange::default() },
            KeyChange { contracts: Some("0x12".into()), ..KeyChange::default() },
            KeyChange { addresses: Some("10.0.0.0/33".into()), ..KeyChange::default() },
            KeyChange { origins: Some(long), ..KeyChange::default() },
            KeyChange { origins: Some("https://\u{1b}[2J".into()), ..KeyChange::default() },
            KeyChange { name: Some("a\nb".into()), ..KeyChange::default() },
            KeyChange { per_second: Some(u32::MAX), ..KeyChange::default() },
        ] {
            assert!(matches!(changed(&change), Err(KeyError::Invalid(_))), "{change:?}");
        }
    }

    #[test]
    fn rules_take_a_right_away_if_something_is_not_allowed_any_more() {
        let of = |contracts: &[u8], methods: &[&str], state_override| KeyRules {
            contracts: contracts.iter().map(|byte| Address::repeat_byte(*byte)).collect(),
            methods: methods.iter().map(|method| (*method).to_owned()).collect(),
            state_override,
            ..KeyRules::default()
        };
        let (all, some) = (of(&[], &[], true), of(&[1, 2], &["eth_*", "net_version"], true));
        let fewer = of(&[2], &["eth_*"], true);
        for (now, before, takes) in [
            (&some, &all, true),
            (&fewer, &some, true),
            (&all, &some, false),
            (&some, &fewer, false),
            (&some, &some, false),
            (&of(&[], &[], false), &all, true),
            (&of(&[3], &[], true), &of(&[1], &[], true), true),
        ] {
            assert_eq!(now.take_from(before), takes, "{now:?} {before:?}");
            assert_eq!(now.rights() == before.rights(), now == before);
        }
        let mixed = of(&[2, 1, 2], &["net_version", "eth_*"], true);
        assert!(mixed.rights() == some.rights() && !mixed.take_from(&some), "the order gives no right");
        let tracing = KeyRules { debug: true, ..all.clone() };
        assert!(all.take_from(&tracing) && !tracing.take_from(&all) && tracing.rights() != all.rights());
        let slower = KeyRules { per_second: Some(1), ..all.clone() };
        assert!(!slower.take_from(&all) && slower.rights() == all.rights(), "a rate is no right");
    }

    #[test]
    fn methods_are_matched_by_name_alias_and_namespace() {
        let rules = changed(&KeyChange {
            methods: Some("rsk_getRawBlockHeaderByHash,net_*".into()),
            ..KeyChange::default()
        });
        let rules = rules.unwrap();
        for (name, allowed) in [
            ("rsk_getRawBlockHeaderByHash", true),
            ("ext_getRawBlockHeaderByHash", true),
            ("net_version", true),
            ("eth_call", false),
            ("network_x", false),
            ("unknown", false),
        ] {
            assert_eq!(rules.allows(name, dispatcher().find(name)), allowed, "{name}");
        }
        assert!(KeyRules::default().allows("unknown", None));
    }

    #[test]
    fn addresses_are_networks_or_single() {
        let text = "10.0.0.0/8, 192.168.1.7, 2001:db8::/32, ::ffff:1.2.3.4";
        let rules = changed(&KeyChange { addresses: Some(text.into()), ..KeyChange::default() }).unwrap();
        for (address, admitted) in [
            ("10.1.2.3", true),
            ("::ffff:10.1.2.3", true),
            ("192.168.1.7", true),
            ("1.2.3.4", true),
            ("192.168.1.8", false),
            ("2001:db8::5", true),
            ("2001:db9::5", false),
        ] {
            assert_eq!(rules.admits(address.parse().unwrap()), admitted, "{address}");
        }
    }
}
