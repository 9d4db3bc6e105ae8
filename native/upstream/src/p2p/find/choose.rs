//! Which node is dialled next. The rule prevents an eclipse, in which all nodes of a client belong to one attacker.
//!
//! One operator easily has many addresses of one network, and rarely addresses of many networks. So of the nodes that the slots
//! use at a time
//! - no two are in the same /24 (IPv6: /48), ever;
//! - no two are in the same /16 (IPv6: /32), as long as there is a node elsewhere.
//!
//! Among the nodes that these rules allow, while no used node has snapshot service, a state server of the network's data comes
//! first, then a node with that service; after these, a node that did not fail last. The rest is chance, so that no attacker can
//! be first by choice. Private addresses, which only a flag allows, have no networks.

use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;

use rootlight_p2p::discovery::{NodeRecord, is_public, networks};

use super::known::KnownNode;

/// Whether two addresses are in the same smaller and in the same larger network.
fn in_same_networks(one: IpAddr, other: IpAddr) -> (bool, bool) {
    // An IPv4 network never equals one of IPv6.
    if !is_public(one) || !is_public(other) || one.is_ipv4() != other.is_ipv4() {
        return (false, false);
    }
    let ((small, large), (other_small, other_large)) = (networks(one), networks(other));
    (small == other_small, large == other_large)
}

/// The node to dial next, in addition to those that are `in_use`, at the time `now` in seconds since 1970. `all` is the whole
/// list.
pub(super) fn choose<'a>(
    all: impl Iterator<Item = &'a KnownNode> + Clone,
    in_use: &[NodeRecord],
    allow: impl Fn(&NodeRecord) -> bool,
    now: u64,
) -> Option<NodeRecord> {
    // Hashes ids with a random key, which gives the nodes a random order.
    let chance = RandomState::new();
    let caught = all.clone().filter(|known| known.is_caught(now)).collect::<Vec<_>>();
    let free = |known: &&KnownNode| {
        let node = known.node;
        !known.is_backing_off(in_use.is_empty())
            && allow(&node)
            && !caught.iter().any(|liar| liar.node.id == node.id || liar.shares_owner(&node.address))
            && !in_use.iter().any(|other| {
                other.id == node.id
                    || other.address == node.address
                    || in_same_networks(other.address.ip(), node.address.ip()).0
            })
    };
    let has_state = all
        .clone()
        .any(|known| known.snap == Some(true) && in_use.iter().any(|other| other.id == known.node.id));
    // The least rank is chosen.
    let rank = |known: &&KnownNode| {
        let near = in_use.iter().any(|other| in_same_networks(other.address.ip(), known.node.address.ip()).1);
        let service = match known.snap {
            _ if has_state => 0,
            Some(false) => 3,
            _ if known.is_state_server => 0,
            Some(true) => 1,
            None => 2,
        };
        (near, service, known.failures > 0, chance.hash_one(known.node.id.as_bytes()))
    };
    all.filter(free).min_by_key(rank).map(|known| known.node)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::p2p::find::known::Misbehaviour;
    use rootlight_p2p::rlpx::NodeId;

    fn node(number: u8, address: &str) -> KnownNode {
        let node = NodeRecord { id: NodeId::from_bytes([number; 64]), address: address.parse().unwrap() };
        KnownNode::new(node, 1)
    }

    fn chosen(all: &[KnownNode], in_use: &[NodeRecord]) -> Option<u8> {
        choose(all.iter(), in_use, |_| true, 1_000).map(|node| node.id.as_bytes()[0])
    }

    #[test]
    fn used_nodes_are_of_different_networks() {
        let all = [
            node(1, "8.8.8.8:5050"),
            node(2, "8.8.8.9:5050"),
            node(3, "8.8.9.1:5050"),
            node(4, "9.9.9.9:5050"),
            node(5, "[2600:1:2::1]:5050"),
            node(6, "[2600:1:2:9::1]:5050"),
            node(7, "[2600:1:3::1]:5050"),
        ];
        let in_use = |numbers: &[usize]| numbers.iter().map(|n| all[n - 1].node).collect::<Vec<_>>();
        for _ in 0..32 {
            assert!(matches!(chosen(&all, &in_use(&[1])), Some(4..=7)));
            assert_eq!(chosen(&all, &in_use(&[1, 5])), Some(4));
            // Only neighbours in the larger networks are left.
            assert!(matches!(chosen(&all, &in_use(&[1, 4, 5])), Some(3 | 7)));
        }
        assert_eq!(chosen(&all, &in_use(&[1, 3, 4, 5, 7])), None, "never two of one /24 or /48");
    }

    #[test]
    fn private_addresses_have_no_networks_and_no_node_is_used_twice() {
        let all = [node(1, "127.0.0.1:1"), node(2, "127.0.0.1:2")];
        assert_eq!(chosen(&all, &[all[0].node]), Some(2));
        assert_eq!(chosen(&all, &[all[0].node, all[1].node]), None);
    }

    #[test]
    fn a_liar_and_its_neighbours_at_one_address_stay_away_for_a_day() {
        let mut all = [node(1, "8.8.8.8:5050"), node(2, "8.8.8.8:5051"), node(3, "9.9.9.9:5050")];
        all[0].caught = Some(Misbehaviour { at: 1_000, what: String::new() });
        let at = |now| {
            let pick = |_| choose(all.iter(), &[], |_| true, now).map(|node| node.id.as_bytes()[0]);
            (0..64).filter_map(pick).collect::<BTreeSet<u8>>()
        };
        assert_eq!(at(1_000 + 86_399), BTreeSet::from([3]));
        assert_eq!(at(1_000 + 86_400), BTreeSet::from([1, 2, 3]));
    }

    #[test]
    fn nodes_that_serve_state_come_first_while_no_used_node_does() {
        let mut all =
            [node(1, "1.1.1.1:1"), node(2, "2.2.2.2:1"), node(3, "3.3.3.3:1"), node(4, "4.4.4.4:1")];
        (all[0].snap, all[1].snap, all[3].snap) = (Some(false), Some(true), Some(true));
        for _ in 0..16 {
            assert!(matches!(chosen(&all, &[]), Some(2 | 4)));
            assert!(matches!(chosen(&all, &[all[1].node]), Some(1 | 3 | 4)));
        }
        let without = [all[0].clone(), all[2].clone()];
        assert_eq!(chosen(&without, &[]), Some(3), "a node that may have it before one that has it not");
    }

    #[test]
    fn state_servers_come_first_until_a_held_node_serves_state() {
        let mut all =
            [node(1, "1.1.1.1:1"), node(2, "2.2.2.2:1"), node(3, "3.3.3.3:1"), node(4, "4.4.4.4:1")];
        (all[0].snap, all[1].is_state_server, all[2].is_state_server) = (Some(true), true, true);
        for _ in 0..16 {
            assert!(matches!(chosen(&all, &[]), Some(2 | 3)));
            // The state server that is dialled may be dead, so the other one is dialled without waiting.
            assert_eq!(chosen(&all, &[all[1].node]), Some(3));
        }
        let both = [all[1].node, all[2].node];
        assert_eq!(chosen(&all, &both), Some(1), "then one that has served state");
        all[1].fail();
        assert_eq!(chosen(&all, &[all[2].node]), Some(1), "one that failed is left alone");
        all[2].snap = Some(true);
        let others: BTreeSet<_> = (0..64).filter_map(|_| chosen(&all, &[all[2].node])).collect();
        assert_eq!(others, BTreeSet::from([1, 4]), "they get no other places once one has answered");
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_failed_is_left_alone_for_longer_each_time() {
        let mut all = [node(1, "1.1.1.1:1"), node(2, "2.2.2.2:1")];
        let in_use = [all[1].node];
        for seconds in [30, 60, 120, 240, 480, 960, 1_920, 3_600, 3_600] {
            all[0].fail();
            tokio::time::advance(std::time::Duration::from_secs(seconds - 1)).await;
            assert_eq!(chosen(&all, &in_use), None, "{seconds}");
            tokio::time::advance(std::time::Duration::from_secs(1)).await;
            assert_eq!(chosen(&all, &in_use), Some(1), "{seconds}");
        }
        // A client without any node tries again soon.
        all.iter_mut().for_each(|known| (0..20).for_each(|_| known.fail()));
        assert_eq!(chosen(&all, &[]), None);
        tokio::time::advance(std::time::Duration::from_secs(30)).await;
        assert!(chosen(&all, &[]).is_some());
    }

    proptest! {
        /// The slots spread over networks, whatever nodes are in the list, even if an attacker owns most of them.
        #[test]
        fn slots_spread_over_networks(networks in prop::collection::vec((0u8..4, 0u8..3, 1u8..4), 0..40)) {
            let at = |(number, (a, b, c)): (usize, &(u8, u8, u8))| {
                node(u8::try_from(number).unwrap(), &format!("{}.1.{b}.{c}:5050", 20 + a))
            };
            let all: Vec<KnownNode> = networks.iter().enumerate().map(at).collect();
            let mut in_use: Vec<NodeRecord> = Vec::new();
            while let Some(node) = choose(all.iter(), &in_use, |_| true, 0) {
                let near = |one: &NodeRecord, other: &NodeRecord| in_same_networks(one.address.ip(), other.address.ip());
                prop_assert!(in_use.iter().all(|other| !near(other, &node).0), "two of one /24");
                let elsewhere = all.iter().any(|known| in_use.iter().all(|other| !near(other, &known.node).1));
                let apart = in_use.iter().all(|other| !near(other, &node).1);
                prop_assert_eq!(apart, elsewhere, "a /16 is shared only where no other is left");
                in_use.push(node);
            }
            let small: BTreeSet<_> = networks.iter().map(|(a, b, _)| (a, b)).collect();
            prop_assert_eq!(in_use.len(), small.len(), "every /24 has its node in the end");
        }
    }
}
