//! The nodes that the list keeps, forgets and gives out.

use super::*;

fn id(number: u16) -> NodeId {
    let mut bytes = [7; 64];
    bytes[..2].copy_from_slice(&number.to_be_bytes());
    NodeId::from_bytes(bytes)
}

fn node(number: u16, address: &str) -> NodeRecord {
    NodeRecord { id: id(number), address: address.parse().unwrap() }
}

fn ids(list: &NodeList) -> Vec<NodeId> {
    list.nodes().iter().map(|known| known.node.id).collect()
}

#[test]
fn nodes_are_kept_with_what_they_were_caught_with() {
    let folder = tempfile::tempdir().unwrap();
    let open = |network| NodeList::open(network, false, Some(folder.path()));
    let list = open(775);
    list.found(node(1, "8.8.8.8:5050"));
    list.found(node(2, "9.9.9.9:5050"));
    list.caught(&id(1), "a false header\n\u{1b}[31m");
    let before = list.nodes();
    drop(list);

    let list = open(775);
    let after = list.nodes();
    assert_eq!(after.len(), 2);
    assert_eq!((&after[0].node, after[0].seen), (&before[0].node, before[0].seen));
    assert_eq!(after[0].caught.as_ref().unwrap().what, "a false header[31m");
    assert_eq!(list.take(0), Some(node(2, "9.9.9.9:5050")), "the liar is not dialled");
    assert_eq!(list.take(1), None);
    // Another id at the liar's address is its own.
    list.found(node(3, "8.8.8.8:5051"));
    assert_eq!(list.take(1), None);
    drop(list);
    assert!(open(8100).nodes().is_empty(), "nodes of another network");
}

#[test]
fn state_servers_are_dialled_first_have_room_in_a_full_list_and_are_not_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let list = NodeList::open(775, false, Some(folder.path()));
    for number in 0..u16::try_from(MAX_NODES).unwrap() {
        let [a, b] = number.to_be_bytes();
        list.found(node(number, &format!("{}.{b}.1.1:5050", a + 20)));
    }
    let server = node(7_000, "20.0.1.2:5050");
    for _ in 0..2 {
        list.add_state_server(server);
    }
    assert_eq!(ids(&list).len(), MAX_NODES + 1);
    assert_eq!(list.take(0), Some(server));
    for _ in 0..HOPELESS {
        list.failed(&server.id);
    }
    list.release(0);
    list.lost(&server.id);
    list.found(node(8_000, "99.1.1.1:5050"));
    assert!(ids(&list).contains(&server.id));
    // The state server moves to another address.
    let moved = NodeRecord { address: "30.0.0.1:5050".parse().unwrap(), ..server };
    list.add_state_server(moved);
    assert!(list.nodes().iter().any(|known| known.node == moved && known.is_state_server()));
    drop(list);
    // The data names it, not the file.
    let kept = NodeList::open(775, false, Some(folder.path()));
    assert!(kept.nodes().iter().all(|known| !known.is_state_server()));
}

#[test]
fn a_damaged_file_is_no_list() {
    let folder = tempfile::tempdir().unwrap();
    let open = || NodeList::open(775, false, Some(folder.path()));
    let path = folder.path().join(node_file::FILE);
    for text in ["", "{", "[]", r#"{"version":2,"network":775,"nodes":[]}"#, &" ".repeat(5 << 20)] {
        std::fs::write(&path, text).unwrap();
        assert!(open().nodes().is_empty());
    }
    // Entries that name no node, or one at a private address, are left out.
    let good = format!(r#"{{"id":"{}","address":"8.8.8.8:5050","seen":1}}"#, id(1));
    let text = |entries: &[&str]| format!(r#"{{"version":1,"network":775,"nodes":[{}]}}"#, entries.join(","));
    let local = good.replace("8.8.8.8", "127.0.0.1");
    let mapped = good.replace("8.8.8.8", "[::ffff:10.0.0.1]");
    let no_id = good.replace(&id(1).to_string(), "07");
    std::fs::write(&path, text(&[&local, &mapped, &no_id, &good])).unwrap();
    assert_eq!(ids(&open()), [id(1)]);
    // The next write replaces what was damaged.
    std::fs::write(&path, "nonsense").unwrap();
    let list = open();
    list.found(node(2, "9.9.9.9:5050"));
    drop(list);
    assert_eq!(ids(&open()), [id(2)]);
}

#[test]
fn a_list_that_could_not_be_written_is_written_by_the_next_save() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("data");
    let open = || NodeList::open(775, false, Some(&folder));
    let list = open();
    list.found(node(1, "8.8.8.8:5050"));
    std::fs::write(&folder, "a file in the place of the folder").unwrap();
    list.save();
    std::fs::remove_file(&folder).unwrap();
    list.save();
    assert_eq!(ids(&open()), [id(1)]);
}

#[test]
fn a_file_does_not_make_the_list_grow() {
    let folder = tempfile::tempdir().unwrap();
    let entry = |number: u16| {
        let [a, b] = number.to_be_bytes();
        let (id, what) = (id(number), "x".repeat(1_000));
        format!(
            r#"{{"id":"{id}","address":"{}.{b}.1.1:5050","seen":{number},"client":"{what}","caught":{{"at":1,"what":"{what}"}}}}"#,
            a + 20
        )
    };
    let entries: Vec<String> = (0..1_000).map(entry).collect();
    let text = format!(r#"{{"version":1,"network":775,"nodes":[{}]}}"#, entries.join(","));
    std::fs::write(folder.path().join(node_file::FILE), text).unwrap();
    let list = NodeList::open(775, false, Some(folder.path()));
    let nodes = list.nodes();
    assert_eq!(nodes.len(), MAX_NODES);
    assert!(
        nodes
            .iter()
            .all(|known| known.client.len() == 256 && known.caught.as_ref().unwrap().what.len() == 256)
    );
    // A new node takes the place of the one seen least lately, and no held node leaves.
    list.found(node(5_000, "8.8.8.8:5050"));
    let now = ids(&list);
    assert!(now.len() == MAX_NODES && now.contains(&id(5_000)) && !now.contains(&id(0)));
}

#[test]
fn nodes_of_a_run_with_a_wrong_clock_are_dialled_and_leave() {
    let folder = tempfile::tempdir().unwrap();
    let entry = |number: u16| {
        let ([a, b], id) = (number.to_be_bytes(), id(number));
        format!(
            r#"{{"id":"{id}","address":"{}.{b}.1.1:5050","seen":9999999999,"caught":{{"at":9999999999,"what":"a lie"}}}}"#,
            a + 20
        )
    };
    let entries: Vec<String> = (0..u16::try_from(MAX_NODES).unwrap()).map(entry).collect();
    let text = format!(r#"{{"version":1,"network":775,"nodes":[{}]}}"#, entries.join(","));
    std::fs::write(folder.path().join(node_file::FILE), text).unwrap();
    let list = NodeList::open(775, false, Some(folder.path()));
    assert!(list.take(0).is_some(), "no node is left alone until the year 2286");
    list.release(0);
    for (number, address) in [(8_001, "8.8.8.8:5050"), (8_002, "9.9.9.9:5050"), (8_003, "11.1.1.1:5050")] {
        list.found(node(number, address));
    }
    let now = ids(&list);
    assert!(now.len() == MAX_NODES && [8_001, 8_002, 8_003].iter().all(|number| now.contains(&id(*number))));
}

#[test]
fn one_network_does_not_fill_the_list() {
    let list = NodeList::open(775, true, None);
    (0..100).for_each(|host| list.found(node(host, &format!("8.8.{host}.1:5050"))));
    assert_eq!(list.nodes().len(), PER_NETWORK);
    (100..200).for_each(|host| list.found(node(host, &format!("127.0.0.1:{}", 5_000 + host))));
    assert_eq!(list.nodes().len(), PER_NETWORK + 100);
}

#[tokio::test(start_paused = true)]
async fn slots_get_different_nodes_and_give_them_back() {
    let list = NodeList::open(775, false, None);
    for (number, address) in [(1, "8.8.8.8:1"), (2, "8.8.8.9:1"), (3, "9.9.9.9:1")] {
        list.found(node(number, address));
    }
    let (first, second) = (list.take(0).unwrap(), list.take(1).unwrap());
    assert_ne!(first.address.ip().to_string()[..1], second.address.ip().to_string()[..1]);
    assert_eq!((list.take(2), list.in_use()), (None, 2), "the third node is of the first one's /24");
    let three = if first.id == id(3) { 0 } else { 1 };
    list.failed(&id(3));
    list.release(three);
    assert_eq!(list.take(three), None, "it rests, and the other slot holds the only other network");
    tokio::time::advance(std::time::Duration::from_secs(30)).await;
    assert_eq!(list.take(three).unwrap().id, id(3));
}

#[test]
fn nodes_that_are_connected_otherwise_are_left_out() {
    let list = NodeList::open(775, false, None);
    list.found(node(1, "8.8.8.8:1"));
    list.avoid(&[id(1)]);
    assert_eq!(list.take(0), None);
}

#[test]
fn a_slot_gives_up_a_node_without_state_for_one_that_may_have_it() {
    let hello = |snap: bool| {
        let name = if snap { "snap" } else { "rsk" };
        let capability = rootlight_p2p::session::Capability { name: name.into(), version: 1 };
        Hello {
            version: 4,
            client_id: "client".into(),
            capabilities: vec![capability],
            listen_port: 0,
            node_id: id(0),
        }
    };
    let list = NodeList::open(775, true, None);
    list.found(node(1, "127.0.0.1:1"));
    assert_eq!(list.take(0).unwrap().id, id(1));
    assert!(!list.wants_state(0), "what it serves is not known yet");
    list.connected(&id(1), &hello(false));
    assert!(!list.wants_state(0), "there is no other");
    list.found(node(2, "127.0.0.1:2"));
    assert!(list.wants_state(0));
    list.take(1).unwrap();
    assert!(!list.wants_state(0), "the other slot's node may serve state");
    list.connected(&id(2), &hello(false));
    assert!(!list.wants_state(0), "neither serves state, and there is no third");
    list.found(node(3, "127.0.0.1:3"));
    assert!(list.wants_state(0));
    list.connected(&id(2), &hello(true));
    assert!(!list.wants_state(0));
}

/// After an outage of our own network, no node answers; what was of use before is tried again.
#[test]
fn an_outage_does_not_empty_the_list() {
    let hello = Hello {
        version: 4,
        client_id: "client".into(),
        capabilities: Vec::new(),
        listen_port: 0,
        node_id: id(1),
    };
    let list = NodeList::open(775, false, None);
    list.found(node(1, "8.8.8.8:1"));
    list.found(node(2, "9.9.9.9:1"));
    list.connected(&id(1), &hello);
    for id in [id(1), id(2)] {
        (0..5).for_each(|_| list.failed(&id));
        list.lost(&id);
    }
    assert_eq!(ids(&list), [id(1)], "one that never was of use is forgotten");
    assert_eq!(list.nodes()[0].failures, 5);
    // The node answers discovery again.
    list.found(node(1, "8.8.8.8:1"));
    assert_eq!((list.nodes()[0].failures, list.take(0)), (0, Some(node(1, "8.8.8.8:1"))));
}
