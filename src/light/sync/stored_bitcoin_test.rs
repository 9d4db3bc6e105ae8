//! Bitcoin's chain between two runs of a client that learns it from upstreams.

use super::{
    SyncStep,
    ask_bitcoin_test::{Client, NOW, START, Server, minutes, unknown},
    phase::Phase,
    window::LONGEST_PAUSE,
};
use crate::{
    consensus::bitcoin::{BitcoinChain, BitcoinNetwork, testing::mine_on},
    light::Now,
};

/// Asks an upstream whether it has Bitcoin's chain.
const TIP: &str = r#"Headers["0x0","0x0"]"#;

impl Client {
    /// A client to which an earlier run left these bytes; `now` is the time of its start in seconds since 1970.
    fn restored(upstreams: usize, stored: &[u8], now: u64) -> Self {
        let mut client = Self::new(upstreams);
        client.sync.restore_bitcoin(stored, now);
        assert_eq!(client.tip(), 0, "nothing is followed before an upstream has shown it");
        client
    }

    /// The bytes of Bitcoin's chain that the host stores now.
    fn export(&mut self) -> Option<Vec<u8>> {
        self.sync.export_bitcoin().map(|follower| follower.stored())
    }

    fn lies(&self) -> u32 {
        self.sync.upstreams().iter().map(|state| state.record.lies).sum()
    }
}

/// The time of a server's newest block.
fn time(server: &Server) -> u64 {
    server.0.chain().tip().time.into()
}

/// A server of Bitcoin's chain, and the bytes that a client has stored of the chain and its coinbases.
fn first_run() -> (Server, Vec<u8>) {
    let (mut server, mut client) = (Server::new(2_100), Client::new(1));
    server.mine(2_100, 80);
    client.ask(0, |request| server.answer(request));
    let stored = client.export().unwrap();
    (server, stored)
}

#[test]
fn a_restart_asks_for_what_is_new() {
    let (mut server, stored) = first_run();
    server.mine(2_180, 6);
    let mut client = Client::restored(2, &stored, time(&server));
    // The other upstream is asked at the same time, and answers later.
    let now = Now { unix: NOW, millis: 0 };
    client.sync.peers[1].phase = Phase::Idle(u64::MAX);
    let SyncStep::Fetch(late) = client.sync.next(1, now) else { unreachable!() };
    let asked = client.ask(0, |request| server.answer(request));
    // The tip that is stored and six new blocks, and the coinbases of these.
    assert_eq!(asked, [r#"Headers["0x884","0x7e0"]"#, r#"Tags["0x885","0x6"]"#]);
    let follower = client.sync.bitcoin().unwrap();
    assert_eq!(follower.chain().tip(), server.0.chain().tip());
    assert!(follower.missing_coinbases().is_empty());
    client.sync.feed(1, vec![server.answer(&late[0])], now);
    assert_eq!(client.ask(1, |request| server.answer(request)), [""; 0]);
    assert_eq!(client.export(), None, "what is stored suffices");
    client.millis = minutes(1);
    assert_eq!(client.ask(1, |request| server.answer(request)), [r#"Headers["0x88b","0x7e0"]"#]);
}

/// The bytes of a restart with the coinbases that are stored, and with none of them.
#[test]
fn a_restart_receives_the_coinbases_of_new_blocks_alone() {
    let (mut server, stored) = first_run();
    server.mine(2_180, 6);
    let [few, all] = [&stored[..], &server.0.chain().stored()[..]].map(|stored| {
        let (mut client, mut received) = (Client::restored(1, stored, time(&server)), 0);
        client.ask(0, |request| {
            let answer = server.answer(request);
            received += answer.as_ref().unwrap().get().len();
            answer
        });
        assert!(client.sync.bitcoin().unwrap().missing_coinbases().is_empty());
        received
    });
    assert!(few < all / 5, "{few} of {all} bytes");
}

/// The chain may be stored before its coinbases are there.
#[test]
fn coinbases_are_stored_once_they_are_there() {
    let (mut server, mut client) = (Server::new(2_100), Client::new(1));
    server.mine(2_100, 80);
    client
        .ask(0, |request| if request.method.ends_with("Tags") { unknown() } else { server.answer(request) });
    let before = client.export().unwrap();
    assert_eq!(client.sync.bitcoin().unwrap().missing_coinbases().len(), 78);
    server.mine(2_180, 1);
    client.millis = minutes(10);
    client.ask(0, |request| server.answer(request));
    let after = client.export().unwrap();
    assert!(after.len() > before.len() + 10_000, "{} {}", before.len(), after.len());
    assert_eq!(client.export(), None);
    let mut client = Client::restored(1, &before, time(&server));
    client.ask(0, |request| server.answer(request));
    assert!(client.export().is_some(), "what is stored lacks them");
}

/// Each coinbase is proven again, so that damage costs those whose bytes or whose places in the list it changes.
#[test]
fn damaged_coinbases_are_fetched_again_and_blame_no_upstream() {
    let (server, stored) = first_run();
    let end = stored.len() - server.0.chain().stored().len();
    let all = r#"Tags["0x837","0x4e"]"#;
    let cases = [
        // The form and the length, without which nothing says where the chain begins.
        (0, true, all),
        (1, true, all),
        (4, true, all),
        // The height of the first one, and the form of the list.
        (5, false, all),
        (8, false, all),
        (9, false, all),
        // A coinbase.
        (60, false, r#"Tags["0x837","0x1"]"#),
        (end / 2, false, r#"Tags["0x85d","0x1"]"#),
        (end - 1, false, r#"Tags["0x884","0x1"]"#),
    ];
    for (at, is_lost, tags) in cases {
        let mut damaged = stored.clone();
        damaged[at] ^= 1;
        let mut client = Client::restored(1, &damaged, time(&server));
        let asked = client.ask(0, |request| server.answer(request));
        assert_eq!(asked.last().unwrap(), tags, "byte {at}");
        assert_eq!(asked[0] == TIP, is_lost, "byte {at}: {asked:?}");
        assert!(client.sync.bitcoin().unwrap().missing_coinbases().is_empty());
        assert_eq!(client.lies(), 0);
    }
}

#[test]
fn the_chain_is_written_once_in_three_hours() {
    let (mut server, mut client) = (Server::new(100), Client::new(1));
    assert_eq!(client.export(), None, "no block is known");
    let mut is_written = |server: &Server| {
        client.millis += minutes(1);
        client.ask(0, |request| server.answer(request));
        assert_eq!(client.sync.bitcoin().unwrap().chain().tip(), server.0.chain().tip());
        client.export().is_some()
    };
    assert!(is_written(&server));
    assert!(!is_written(&server));
    server.mine(100, 17);
    assert!(!is_written(&server));
    server.mine(117, 1);
    assert!(is_written(&server));
    // The newest block that is stored is replaced.
    server.mine(117, 3);
    assert!(is_written(&server));
    assert!(!is_written(&server));
    client.sync.store_again(0);
    let stored = client.export();
    assert_eq!(stored, Some(server.0.stored()), "the host could not store it");
}

#[test]
fn what_does_not_verify_or_is_too_old_is_fetched_anew() {
    let server = Server::new(2_100);
    let (stored, end) = (server.0.chain().stored(), time(&server));
    let mut changed = stored.clone();
    changed[1_000] ^= 1;
    let cut = &stored[..stored.len() - 1];
    let cases = [
        (&stored[..], end + LONGEST_PAUSE, true),
        (&stored[..], end + LONGEST_PAUSE + 1, false),
        // The clock has gone back.
        (&stored[..], end - 10_000, false),
        (&changed[..], end, false),
        (cut, end, false),
        (&stored[..0], end, false),
    ];
    for (number, (bytes, now, is_used)) in cases.into_iter().enumerate() {
        let mut client = Client::restored(1, bytes, now);
        let asked = client.ask(0, |request| server.answer(request));
        assert_eq!(asked[0] != TIP, is_used, "case {number}: {asked:?}");
        assert_eq!((client.tip(), client.lies()), (2_100, 0), "case {number}");
        assert_eq!(client.export().is_none(), is_used, "case {number}");
    }
}

/// A program that writes to the store chooses heights, and may leave out the newest hours.
#[test]
fn a_chain_whose_tip_an_upstream_does_not_show_is_fetched_anew() {
    let BitcoinNetwork { checkpoint, limit, .. } = BitcoinNetwork::REGTEST;
    let server = Server::new(2_100);
    let headers: Vec<_> = (1..=2_100).map(|height| server.0.chain().header_at(height).unwrap()).collect();
    let moved = BitcoinChain::begin(BitcoinNetwork::REGTEST, 2_017, &headers, NOW).unwrap();
    let other = |blocks| Server::of(&mine_on(checkpoint.hash, 1, START, 600, limit, blocks)).0;
    // The last one is higher than the upstream's.
    for chain in [&moved, other(2_090).chain(), other(2_110).chain()] {
        let mut client = Client::restored(1, &chain.stored(), time(&server));
        let asked = client.ask(0, |request| server.answer(request));
        assert_eq!((asked[0] != TIP, asked[1].as_str()), (true, TIP), "{asked:?}");
        let followed = client.sync.bitcoin().unwrap().chain();
        assert_eq!((followed.tip(), followed.start().height), (server.0.chain().tip(), 0));
        assert_eq!(client.lies(), 0);
        assert!(client.export().is_some(), "it is replaced");
    }
}

#[test]
fn a_stored_chain_judges_nothing_where_no_upstream_has_one() {
    let server = Server::new(2_100);
    let mut client = Client::restored(1, &server.0.chain().stored(), time(&server));
    assert_eq!(client.ask(0, |_| unknown()).len(), 1);
    assert!(client.sync.bitcoin().is_none());
}

/// An upstream may be a Rootlight that follows Bitcoin's chain a little later.
#[test]
fn a_stored_chain_is_used_once_an_upstream_has_one_after_none_did() {
    for (parent, removed, first) in [(4_100, None, r#"Headers["0x1004","0x7e0"]"#), (4_093, Some(7), TIP)] {
        let mut server = Server::new(4_100);
        let stored = server.0.chain().stored();
        server.mine(parent, 8);
        let mut client = Client::restored(1, &stored, time(&server));
        client.ask(0, |_| unknown());
        assert!(client.sync.bitcoin().is_none());
        client.millis = minutes(10);
        let asked = client.ask(0, |request| server.answer(request));
        let follower = client.sync.bitcoin().unwrap();
        assert_eq!((follower.chain().tip(), follower.reorganisation()), (server.0.chain().tip(), removed));
        assert!(asked[0].starts_with("Headers[\"0x1004\"") && asked.contains(&first.to_owned()), "{asked:?}");
        assert_eq!(client.lies(), 0);
    }
}
