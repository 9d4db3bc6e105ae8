//! State servers: nodes with snapshot service that the network's data names, because few nodes have that service. This file looks
//! up their addresses by DNS.

use std::net::SocketAddr;
use std::sync::Arc;

use rootlight_p2p::discovery::{NodeRecord, allowed, canonical};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::debug;

use super::boot::{BootHost, look_up};
use super::list::NodeList;
use crate::p2p::PeerAddress;

/// Looks all servers up at the same time, again and again, and adds them to the node list, until the returned value is
/// dropped.
pub(super) fn look_up_all(servers: Vec<PeerAddress>, list: &Arc<NodeList>) -> JoinSet<()> {
    let mut looking = JoinSet::new();
    for server in servers {
        let list = list.clone();
        looking.spawn(async move {
            let host = server.host.trim_start_matches('[').trim_end_matches(']').to_owned();
            let (found, mut addresses) = mpsc::channel::<Vec<SocketAddr>>(1);
            let note = async {
                while let Some(addresses) = addresses.recv().await {
                    let usable = |address| allowed(canonical(address), list.allows_private());
                    match addresses.into_iter().find(|address| usable(*address)) {
                        Some(address) => {
                            list.add_state_server(NodeRecord { id: server.id, address: canonical(address) });
                        }
                        None => debug!("state server {server}: all its addresses are private or special"),
                    }
                }
            };
            tokio::join!(look_up(BootHost { host, port: server.port }, found), note);
        });
    }
    looking
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rootlight_p2p::rlpx::NodeId;

    use super::*;

    #[tokio::test]
    async fn servers_come_into_the_list_unless_their_addresses_are_private() {
        let server = |number: u8, host: &str| PeerAddress {
            id: NodeId::from_bytes([number; 64]),
            host: host.into(),
            port: 5050,
        };
        for (private, expected) in [(true, vec![1, 2, 3]), (false, vec![3])] {
            let list = Arc::new(NodeList::open(775, private, None));
            let servers = vec![server(1, "localhost"), server(2, "[::1]"), server(3, "9.9.9.9")];
            let _looking = look_up_all(servers, &list);
            let known = || list.nodes().iter().map(|known| known.node.id.as_bytes()[0]).collect::<Vec<_>>();
            while known().len() < expected.len() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert_eq!(known(), expected);
        }
    }
}
