//! What a request costs each part of the service, in seconds of processor time, and which requests there are. Each number
//! says where it is from: processor times do not depend on how busy the machine was, so those of different runs fit together.

/// A microsecond.
const MICRO: f64 = 1e-6;

/// The costs and the mix of requests.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    /// A front end reads a request, looks its key up and writes the answer from what it has proven.
    pub answer: f64,
    /// A front end reads a backend's response, verifies it and runs the request again.
    pub verify: f64,
    /// A front end asks the database for a block, decodes its rows and checks them.
    pub read: f64,
    /// A front end asks the database for logs, decodes them and writes them.
    pub read_logs: f64,
    /// A shard of the store runs the script that counts requests of a key.
    pub count: f64,
    /// Requests of a key that are counted by one run of the script, because it gives a lease.
    pub lease: f64,
    /// A front end sends a command to the store and reads the response.
    pub command: f64,
    /// The database answers a look-up.
    pub look_up: f64,
    /// The database answers a sparse question about logs.
    pub logs: f64,
    /// A backend answers.
    pub backend: f64,
    /// There and back over the network of one place.
    pub network: f64,
    /// Share of requests that need a look-up in the index.
    pub look_up_share: f64,
    /// Share of requests for logs of many blocks.
    pub many_logs_share: f64,
    /// Share of requests that need a proof that only a backend gives.
    pub proof_share: f64,
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            // `eth_call` of a token, 28.5, in docs/benchmarks.md ("Requests"), times 1.3 for the cluster, its limit.
            answer: 37.0 * MICRO,
            // Assumed: a proof of 18 nodes, or three recovered senders and a root.
            verify: 150.0 * MICRO,
            // Measured by `speed` of the index (500, the client's time), and as much as above for the check.
            read: 650.0 * MICRO,
            // Measured by `speed` of the index: the client's time for 10 logs.
            read_logs: 400.0 * MICRO,
            // Measured: the store's time for the script, 20 with eight commands in a row, 26 alone.
            count: 26.0 * MICRO,
            // Assumed: keys far below their limit get leases of this many requests.
            lease: 8.0,
            // Assumed: as much as the store's own input and output takes for a short command, measured at 9.
            command: 9.0 * MICRO,
            // Measured by `speed` of the index: the server's time.
            look_up: 1_030.0 * MICRO,
            // Measured by `speed` of the index: the server's time for 10 logs.
            logs: 3_150.0 * MICRO,
            // A block of 100 transactions costs a development chain this, and a proof of 18 nodes is not longer.
            backend: 110.0 * MICRO,
            // Assumed for machines in one place; over loopback it is a tenth.
            network: 200.0 * MICRO,
            look_up_share: 0.05,
            many_logs_share: 0.005,
            proof_share: 0.10,
        }
    }
}
