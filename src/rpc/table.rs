//! The method table. Dispatch, `rpc_modules`, the OpenRPC catalogue and docs/methods.md are made from it and from the rows
//! of the host.

use alloc::vec::Vec;

use serde::{Serialize, Serializer};

use super::{
    blocks, call, chain,
    error::RpcError,
    filters, headers, logs,
    method::{HandlerResult, Method, done},
    params::Params,
    raw_transaction, simulate, state, transactions,
};
use crate::engine::{Level, View};

/// Methods of every chain, by file.
static METHODS: &[&[Method]] = &[
    chain::METHODS,
    blocks::METHODS,
    transactions::METHODS,
    raw_transaction::METHODS,
    state::METHODS,
    call::METHODS,
    simulate::METHODS,
    headers::METHODS,
    logs::METHODS,
    filters::METHODS,
    &[MODULES],
    #[cfg(feature = "light")]
    super::rootlight::METHODS,
    // The following methods execute blocks again or serve other light clients. The light client's browser module leaves
    // them out.
    #[cfg(feature = "local")]
    super::trace::METHODS,
    #[cfg(feature = "local")]
    super::debug::METHODS,
    #[cfg(feature = "local")]
    super::witness::METHODS,
    #[cfg(all(feature = "light", feature = "local"))]
    super::batches::METHODS,
    // Browser modules leave out the following methods too.
    #[cfg(feature = "catalogue")]
    super::access_list::METHODS,
    #[cfg(feature = "catalogue")]
    super::account::METHODS,
    #[cfg(all(feature = "light", feature = "catalogue"))]
    super::bitcoin::METHODS,
    #[cfg(feature = "catalogue")]
    super::bridge::METHODS,
    #[cfg(feature = "catalogue")]
    super::config::METHODS,
    #[cfg(feature = "catalogue")]
    &[DISCOVER],
    #[cfg(all(feature = "catalogue", feature = "local"))]
    super::otterscan::METHODS,
    #[cfg(feature = "catalogue")]
    super::proof::METHODS,
    #[cfg(feature = "catalogue")]
    super::raw::METHODS,
    #[cfg(all(feature = "catalogue", feature = "local"))]
    super::storage_range::METHODS,
    #[cfg(feature = "catalogue")]
    super::storage_values::METHODS,
    #[cfg(feature = "catalogue")]
    super::work::METHODS,
];

/// Methods of development chains.
#[cfg(feature = "dev")]
static DEV: &[&[Method]] = super::dev::METHODS;

/// None without development chains.
#[cfg(not(feature = "dev"))]
static DEV: &[&[Method]] = &[];

/// Methods of the reference node (rskj 9.1) that Rootlight will not have: compilers and message stores.
pub const UNAVAILABLE: &[&str] = &[
    "db_getHex",
    "db_getString",
    "db_putHex",
    "db_putString",
    "eth_compileLLL",
    "eth_compileSerpent",
    "eth_compileSolidity",
    "eth_getCompilers",
];

/// The advice for methods about fees of EIP-1559.
const LEGACY: &str = "Rootstock has no EIP-1559 fees. Send a legacy transaction with a gasPrice (cast: --legacy; web3.py: gasPrice)";

/// The advice for methods about the base fee.
const BASE_FEE: &str = "Rootstock has no base fee. hardhat_setMinGasPrice sets the minimum gas price";

/// The advice for a method that this browser module does not have: the program, or another module of the package, may have it.
#[cfg(not(feature = "catalogue"))]
const NATIVE: &str = "the package does not have it. `rootlight methods` lists those of the program";

/// The longest name of a method, in bytes, that the error with [`NATIVE`] repeats.
#[cfg(not(feature = "catalogue"))]
const MAX_NAME: usize = 64;

/// The reason for methods about blobs.
const BLOBS: &str = "Rootstock has no blobs";

/// The advice for the method that makes signatures recover to another account.
const SIGNATURES: &str = "No signature recovers to another account. Impersonate the account, or set the code of the contract that checks it";

/// The advice for methods that change the upstream of a fork.
const UPSTREAM: &str = "A fork keeps its block. anvil_reset with {forking: {jsonRpcUrl}} begins on another";

/// The advice for methods about the beacon chain's random numbers.
const RANDAO: &str = "Rootstock has no PREVRANDAO. Its opcode 0x44 gives the difficulty";

/// The advice for methods that run several calls one after the other.
const SIMULATION: &str = "eth_simulateV1 runs several calls, each on the state that the earlier ones left";

/// The reason for methods about the beacon chain.
const BEACON: &str = "Rootstock has miners and no beacon chain";

/// Methods of Ethereum and its tools that Rootstock cannot have or that others replace, each with the reason or with advice. A
/// `*` at the end of a name stands for all names that begin with the rest.
pub const IMPOSSIBLE: &[(&str, &str)] = &[
    ("anvil_getBlobByHash", BLOBS),
    ("anvil_getBlobsByTransactionHash", BLOBS),
    ("anvil_impersonateSignature", SIGNATURES),
    ("anvil_setChainId", "Signatures and blocks name the chain id. Start `rootlight dev --chain-id N`"),
    ("anvil_setNextBlockBaseFeePerGas", BASE_FEE),
    ("anvil_setNextBlockParentBeaconBlockRoot", BEACON),
    ("anvil_setNextBlockPrevRandao", RANDAO),
    ("anvil_setRpcUrl", UPSTREAM),
    ("debug_codeByHash", "Codes are found by their account: eth_getCode"),
    ("engine_*", BEACON),
    ("eth_baseFee", BASE_FEE),
    ("eth_blobBaseFee", BLOBS),
    ("eth_callBundle", SIMULATION),
    ("eth_callMany", SIMULATION),
    ("eth_feeHistory", LEGACY),
    (
        "eth_getBlockAccessList*",
        "Blocks have no access lists. debug_traceBlockByHash with prestateTracer shows what a block reads",
    ),
    ("eth_maxPriorityFeePerGas", LEGACY),
    ("eth_resend", "eth_sendRawTransaction with the same nonce and a higher gasPrice replaces a transaction"),
    ("eth_sendRawTransactionConditional", "Miners check no conditions: eth_sendRawTransaction"),
    ("hardhat_setNextBlockBaseFeePerGas", BASE_FEE),
    ("hardhat_setPrevRandao", RANDAO),
    ("hardhat_setRpcUrl", UPSTREAM),
    ("tenderly_*", "Use eth_simulateV1, debug_traceTransaction or anvil_ methods"),
];

/// The error for the name of a method that is not in the table.
pub(super) fn unknown(name: &str) -> RpcError {
    let matches = |known: &str| match known.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == known,
    };
    if let Some((_, instead)) = IMPOSSIBLE.iter().find(|(known, _)| matches(known)) {
        return RpcError::Impossible { method: name.into(), instead };
    }
    match UNAVAILABLE.contains(&name) {
        true => RpcError::NotAvailable(name.into()),
        #[cfg(not(feature = "catalogue"))]
        false if name.len() <= MAX_NAME => RpcError::Impossible { method: name.into(), instead: NATIVE },
        false => RpcError::MethodNotFound,
    }
}

/// Every method of the core, once. A host may have more ([`row`](super::row)).
pub fn methods() -> impl Iterator<Item = &'static Method> {
    METHODS.iter().chain(DEV).flat_map(|rows| rows.iter())
}

/// The method that lists the namespaces.
const MODULES: Method =
    Method::local("rpc_modules", &[], "map of namespace to version", "The namespaces served.", modules);

/// The method that describes all methods.
#[cfg(feature = "catalogue")]
const DISCOVER: Method = Method::local(
    "rpc.discover",
    &[],
    "OpenRPC document",
    "All methods with their parameters and results, as an OpenRPC document.",
    |view, _| super::discover::described(view, methods()),
)
// The document has about 100,000 characters.
.costs(50);

fn modules(_: &dyn View, _: Params<'_>) -> HandlerResult {
    modules_of(methods())
}

/// The answer that lists the namespaces of these rows, each with its version: `rpc_modules` of a host with other rows.
///
/// # Errors
/// None in practice: namespaces are JSON.
pub fn modules_of(methods: impl Iterator<Item = &'static Method>) -> HandlerResult {
    let names = methods.flat_map(|m| core::iter::once(m.name).chain(m.aliases.iter().copied()));
    let mut namespaces: Vec<&'static str> = Vec::new();
    for (namespace, _) in names.filter_map(|name| name.split_once('_')) {
        if let Err(index) = namespaces.binary_search(&namespace) {
            namespaces.insert(index, namespace);
        }
    }
    done(&Versions(namespaces), Level::Local)
}

/// Namespaces of methods, each with its version.
struct Versions(Vec<&'static str>);

impl Serialize for Versions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|namespace| (namespace, "1.0")))
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;
    use crate::rpc::method::{Handler, PageAccess, ParamSubject};

    #[test]
    fn names_are_unique_and_required_parameters_come_first() {
        let mut names = BTreeSet::new();
        for method in methods() {
            for name in core::iter::once(&method.name).chain(method.aliases) {
                assert!(names.insert(*name), "{name} twice");
            }
            assert!(method.params.windows(2).all(|w| w[0].required || !w[1].required), "{}", method.name);
            assert!(!method.doc.is_empty() && method.cost > 0, "{}", method.name);
        }
    }

    #[test]
    fn methods_that_are_not_there_say_what_to_do() {
        for (name, words) in [
            ("anvil_setNextBlockParentBeaconBlockRoot", "no beacon chain"),
            ("eth_callBundle", "eth_simulateV1"),
            ("eth_callMany", "eth_simulateV1"),
            ("eth_getBlockAccessListByBlockHash", "prestateTracer"),
            ("debug_codeByHash", "eth_getCode"),
            ("engine_newPayloadV4", "no beacon chain"),
        ] {
            let error = unknown(name);
            assert_eq!(error.code(), -32601);
            let text = alloc::format!("{error}");
            assert!(text.starts_with(&alloc::format!("the method {name} does not exist/is not available: ")));
            assert!(text.contains(words), "{text}");
        }
    }

    /// The limits of callers count costs, and a caller chooses the cheapest way to the same work.
    #[test]
    fn methods_that_do_the_same_work_cost_the_same() {
        let cost = |name: &str| methods().find(|method| method.name == name).unwrap().cost;
        let queries = ["eth_getLogs", "eth_getFilterLogs", "eth_getFilterChanges", "eth_subscribe"];
        assert!(queries.iter().all(|name| cost(name) == cost("eth_getLogs")));
        for method in methods().filter(|m| m.params.iter().any(|p| p.subject == ParamSubject::Call)) {
            assert!(method.cost >= cost("eth_call"), "{}", method.name);
        }
        for name in ["trace_transaction", "trace_get", "trace_block", "debug_traceTransaction"] {
            assert!(cost(name) >= cost("trace_transaction"), "{name}");
        }
        for name in ["trace_block", "trace_filter", "debug_traceBlockByHash", "debug_traceBlockByNumber"] {
            assert!(cost(name) >= cost("trace_block"), "{name}");
        }
    }

    /// Brief methods are answered at once, before messages that wait for their turn.
    #[test]
    fn methods_that_list_the_pool_are_not_brief() {
        let listed = ["eth_pendingTransactions", "txpool_content", "txpool_contentFrom", "txpool_inspect"];
        for method in methods().filter(|method| listed.contains(&method.name)) {
            assert!(method.cost > crate::rpc::method::BRIEF_COST, "{}", method.name);
        }
    }

    /// A method that changes the chain needs either a signature or a caller who may use the keys.
    #[test]
    fn foreign_pages_may_not_call_methods_that_change_the_chain_or_use_keys() {
        let guarded = |method: &&Method| method.pages == PageAccess::Own;
        for method in methods().filter(|method| method.writes()) {
            let signed = matches!(method.handler, Handler::Forward(..));
            assert_eq!(guarded(&method), !signed, "{}", method.name);
        }
        for name in [
            "personal_dumpRawKey",
            "eth_sign",
            "personal_sign",
            "eth_signTypedData_v4",
            "eth_sendTransaction",
            "anvil_setBalance",
            "evm_mine",
        ] {
            assert!(methods().filter(guarded).any(|method| method.name == name), "{name}");
        }
        let shown: Vec<&str> = methods()
            .filter(|method| !method.writes() && matches!(method.pages, PageAccess::Own | PageAccess::Named))
            .map(|method| method.name)
            .collect();
        let of_the_host = [
            "net_peerList",
            "rootlight_upstreams",
            "eth_accounts",
            "eth_pendingTransactions",
            "txpool_content",
            "txpool_contentFrom",
            "txpool_inspect",
        ];
        assert_eq!(shown, of_the_host, "other methods that only read are open to every page");
    }

    #[test]
    fn each_ext_method_has_its_rsk_name() {
        for method in methods().filter(|m| m.namespace() == "ext") {
            let alias = method.name.replacen("ext_", "rsk_", 1);
            assert!(method.aliases.contains(&alias.as_str()), "{}", method.name);
        }
    }
}
