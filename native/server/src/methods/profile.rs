//! Profiles: the methods that a server offers its callers, and their limits. A row is the entry of a method in the method table,
//! with its handler.

use std::sync::LazyLock;

use rootlight::engine::{Level, View};
use rootlight::rpc::{Handler, HandlerResult, Method, PageAccess, Params, Read, Selection, row};

use super::rows::methods;

/// The use of the service, which the server decides for each caller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// A node of one's own: every method of the chain.
    #[default]
    Node,
    /// A public service: no method that holds keys, mines, controls the chain or inspects the node. `eth_accounts`
    /// is always empty, and `trace_filter` has narrower limits (docs/server.md).
    Hosted,
}

/// Namespaces that the hosted profile leaves out, in addition to the methods that not every web page may call.
const LEFT_OUT: [&str; 7] = ["anvil", "debug", "evm", "hardhat", "mnr", "personal", "sco"];

/// Rows of the hosted profile that replace the row of the same name.
static HOSTED: LazyLock<Vec<Method>> = LazyLock::new(|| methods().filter_map(replacement).collect());

/// The row of the hosted profile for a method that this profile answers in another way; `None` for all other methods.
fn replacement(method: &'static Method) -> Option<Method> {
    let handler: Read = match method.name {
        "eth_accounts" | "eth_pendingTransactions" => none,
        "net_peerList" => numbered_peers,
        "rootlight_upstreams" => row::numbered_upstreams,
        "rpc.discover" => document,
        "rpc_modules" => modules,
        "trace_filter" => row::hosted_filter,
        _ => return None,
    };
    Some(Method { handler: Handler::Read(handler), pages: PageAccess::Any, ..*method })
}

/// Whether a row is one of the hosted profile's own.
pub fn is_hosted(row: &Method) -> bool {
    HOSTED.iter().any(|own| std::ptr::eq(own, row))
}

/// The hosted profile's own row of a method.
fn own_row(method: &Method) -> Option<&'static Method> {
    HOSTED.iter().find(|row| row.name == method.name)
}

impl Profile {
    /// Every profile.
    pub const ALL: [Self; 2] = [Self::Node, Self::Hosted];

    /// The name, as the command line takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Hosted => "hosted",
        }
    }

    /// Whether the profile has a method.
    pub fn has(self, method: &Method) -> bool {
        match self {
            Self::Node => true,
            Self::Hosted => {
                let row = own_row(method).unwrap_or(method);
                row.pages == PageAccess::Any && !LEFT_OUT.contains(&row.namespace())
            }
        }
    }

    /// The rows that serve a caller's methods; `None` for all rows of the server. With `debugs` the caller may use the `debug_`
    /// methods too, which only read.
    #[must_use]
    pub const fn selection(self, debugs: bool) -> Option<Selection> {
        match (self, debugs) {
            (Self::Node, _) => None,
            (Self::Hosted, false) => Some(hosted_row),
            (Self::Hosted, true) => Some(|method| match is_debug(method) {
                true => Some(method),
                false => hosted_row(method),
            }),
        }
    }
}

/// Whether a key can be allowed the method under the hosted profile.
fn is_debug(method: &Method) -> bool {
    method.namespace() == "debug" && method.pages == PageAccess::Any && !method.writes()
}

/// The row that serves a method under the hosted profile; `None` if the profile does not have the method.
fn hosted_row(method: &'static Method) -> Option<&'static Method> {
    Profile::Hosted.has(method).then_some(own_row(method).unwrap_or(method))
}

/// All methods of the hosted profile.
fn hosted() -> impl Iterator<Item = &'static Method> {
    methods().filter(|method| Profile::Hosted.has(method))
}

/// The empty list: `eth_accounts` of a service that has no keys of accounts, and `eth_pendingTransactions`.
fn none(_: &dyn View, _: Params<'_>) -> HandlerResult {
    row::done(&[(); 0], Level::Local)
}

/// `net_peerList` of a service, whose callers need not know the operator's network.
fn numbered_peers(view: &dyn View, _: Params<'_>) -> HandlerResult {
    let names: Vec<String> =
        (1..=view.upstreams().len()).map(|number| format!("upstream {number}")).collect();
    row::done(&names, Level::Local)
}

/// `rpc_modules` with the namespaces of the hosted profile.
fn modules(_: &dyn View, _: Params<'_>) -> HandlerResult {
    row::modules_of(hosted())
}

/// `rpc.discover` with the methods of the hosted profile.
fn document(view: &dyn View, _: Params<'_>) -> HandlerResult {
    row::described(view, hosted())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosted_profile_has_no_method_that_holds_keys_mines_or_controls_the_chain() {
        for method in hosted() {
            assert!(!method.writes() || matches!(method.handler, Handler::Forward(..)), "{}", method.name);
        }
        let served: Vec<&str> = hosted().map(|method| method.name).collect();
        for name in [
            "eth_sendTransaction",
            "eth_sign",
            "personal_sign",
            "eth_signTypedData_v4",
            "personal_listAccounts",
            "evm_mine",
            "mnr_getWork",
            "anvil_setBalance",
            "debug_traceTransaction",
        ] {
            assert!(methods().any(|method| method.name == name), "{name} is in the table");
            assert!(!served.contains(&name), "{name}");
        }
        for name in ["eth_call", "eth_accounts", "eth_sendRawTransaction", "trace_filter", "txpool_status"] {
            assert!(served.contains(&name), "{name}");
        }
    }

    #[test]
    fn a_key_can_be_allowed_the_methods_of_debug_and_no_others() {
        let allowed: Vec<&str> =
            methods().filter(|method| is_debug(method)).map(|method| method.name).collect();
        assert!(allowed.contains(&"debug_traceBlockByNumber") && allowed.contains(&"debug_getRawReceipts"));
        assert!(allowed.iter().all(|name| name.starts_with("debug_")));
    }

    #[test]
    fn rows_of_the_hosted_profile_replace_rows_of_the_table() {
        assert_eq!(HOSTED.len(), 7);
        for row in HOSTED.iter() {
            let method = methods().find(|method| method.name == row.name).unwrap();
            assert!(std::ptr::eq(hosted_row(method).unwrap(), row), "{}", row.name);
            assert_eq!(row.cost, method.cost);
        }
    }
}
