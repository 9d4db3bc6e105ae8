//! The script by which front ends agree on the head, report by report.

use std::sync::Arc;
use std::time::Duration;

use rootlight_cluster::store::{FromRedisValue as _, HotStore, Script, Value};

use crate::servers::{Servers, cluster};

const KEY: &str = "heads:1";
/// Longer than the test may take on a busy machine.
const LIFETIME: &str = "60000";
/// Front ends that lag are left out with the next report.
const PATIENCE: &str = "0";
const ONE: &str = "a:1,";
const TWO: &str = "b:2,a:1,";

/// Moves all times of the agreement, which is what a step of the store's clock the other way does.
const MOVE: &str = "for _, field in ipairs({'born', 'waiting', 'alone', 'clock', 'raw', 'lost'}) do
  local value = redis.call('HGET', KEYS[1], field)
  if value and value ~= '' then redis.call('HINCRBY', KEYS[1], field, ARGV[1]) end
end
local all = redis.call('HGETALL', KEYS[1])
for at = 1, #all, 2 do
  local ends, rest = string.match(all[at + 1], '^(%d+)(.*)$')
  if string.find(all[at], '^[mo]:') then
    redis.call('HSET', KEYS[1], all[at], string.format('%.0f', ends + ARGV[1]) .. rest)
  end
end
return 1";

#[derive(Debug, PartialEq, Eq)]
struct FrontEndReply {
    part: String,
    round: u64,
    next: String,
    shown: String,
}

struct HeadsFixture {
    store: Arc<HotStore>,
    script: Script,
    _servers: Arc<Servers>,
}

impl HeadsFixture {
    /// Front ends a and b that show block 1.
    async fn new(name: &str) -> Option<Self> {
        let servers = cluster()?;
        let store = servers.connect(&format!("heads-{name}")).await;
        let script = Script::new(include_str!("../../../cluster/src/serve/heads.lua"));
        let fixture = Self { store, script, _servers: servers };
        for name in ["a", "b"] {
            fixture.report(name, "", (0, false), ONE).await;
        }
        // The agreement began long ago.
        let born = [b"born".to_vec(), b"1".to_vec()];
        fixture.store.command::<u64>("HSET", KEY, &born).await.unwrap();
        let round = fixture.report("a", "", (0, false), ONE).await.round;
        for name in ["a", "b"] {
            fixture.report(name, "", (round, true), ONE).await;
        }
        for name in ["a", "b"] {
            assert_eq!(fixture.report(name, "a:1", (0, false), ONE).await.shown, "a:1");
        }
        Some(fixture)
    }

    /// A report: the shown block that is known, the round of the stop and whether messages are kept out, the blocks.
    async fn report(
        &self,
        name: &str,
        shown: &str,
        (ack, closed): (u64, bool),
        blocks: &str,
    ) -> FrontEndReply {
        self.report_with((name, LIFETIME, PATIENCE), shown, (ack, closed), blocks).await
    }

    async fn report_with(
        &self,
        (name, lifetime, patience): (&str, &str, &str),
        shown: &str,
        (ack, closed): (u64, bool),
        blocks: &str,
    ) -> FrontEndReply {
        let (knows, ack, closed) = (u8::from(!shown.is_empty()), ack.to_string(), u8::from(closed));
        let work = format!("{:064x}", blocks.len());
        let (knows, closed) = (knows.to_string(), closed.to_string());
        let arguments = [name, lifetime, patience, shown, &knows, &ack, &work, blocks, &closed, "0", ""];
        let arguments = arguments.map(|argument| argument.as_bytes().to_vec());
        let reply: Vec<Value> = self.store.script(&self.script, KEY, &arguments).await.unwrap();
        let text = |at: usize| String::from_redis_value(reply[at].clone()).unwrap();
        let round = u64::from_redis_value(reply[1].clone()).unwrap();
        FrontEndReply { part: text(0), round, next: text(2), shown: text(3) }
    }

    /// Lets both front ends report as they do, by reports that count for 300 ms, until both show the newest of these
    /// blocks, but not for long. Returns what is shown.
    async fn shows(&mut self, blocks: &str) -> String {
        let newest = blocks.split(',').next().unwrap();
        let mut known = [("a:1".to_owned(), 1), ("a:1".to_owned(), 1)];
        let mut acks = [(0, String::new()), (0, String::new())];
        for _ in 0..200 {
            for (at, name) in ["a", "b"].into_iter().enumerate() {
                let ((shown, round), (ack, next)) = (known[at].clone(), acks[at].clone());
                let canonical = u8::from(blocks.contains(&format!("{shown},")));
                let arguments = [
                    name.to_owned(),
                    "300".to_owned(),
                    "100".to_owned(),
                    shown,
                    canonical.to_string(),
                    ack.to_string(),
                    format!("{:064x}", blocks.len()),
                    blocks.to_owned(),
                    "1".to_owned(),
                    round.to_string(),
                    next,
                ];
                let arguments = arguments.map(String::into_bytes);
                let reply: Vec<Value> = self.store.script(&self.script, KEY, &arguments).await.unwrap();
                let text = |at: usize| String::from_redis_value(reply[at].clone()).unwrap();
                let whole = |at: usize| u64::from_redis_value(reply[at].clone()).unwrap();
                if whole(4) >= round {
                    known[at] = (text(3), whole(4));
                }
                if text(0) == "member" {
                    let stops = blocks.contains(&format!("{},", text(2))) && !text(2).is_empty();
                    acks[at] = if stops { (whole(1), text(2)) } else { (0, String::new()) };
                }
            }
            if known.iter().all(|(shown, _)| shown == newest) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        known[0].0.clone()
    }

    async fn move_times(&self, by: i64) {
        let moved = self.store.script::<u64>(&Script::new(MOVE), KEY, &[by.to_string().into_bytes()]).await;
        assert_eq!(moved.unwrap(), 1);
    }
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_front_end_that_is_left_out_holds_up_the_next_block_until_it_has_learned_of_it() {
    // Whether the report of the other one or its own leaves it out.
    for own in [false, true] {
        let Some(fixture) = HeadsFixture::new(&format!("left-out-{own}")).await else { return };
        fixture.report("b", "a:1", (0, false), TWO).await;
        pause().await;
        if own {
            assert_ne!(fixture.report("a", "a:1", (0, false), ONE).await.part, "member");
        }
        let mut reply = fixture.report("b", "a:1", (0, false), TWO).await;
        if reply.next.is_empty() {
            reply = fixture.report("b", "a:1", (0, false), TWO).await;
        }
        assert_eq!(reply.next, "b:2");
        // This answer is lost, so that it still lets messages in.
        assert_ne!(fixture.report("a", "a:1", (0, false), ONE).await.part, "member");
        for _ in 0..3 {
            let reply = fixture.report("b", "a:1", (reply.round, true), TWO).await;
            assert_eq!(
                (reply.next.as_str(), reply.shown.as_str()),
                ("b:2", "a:1"),
                "left out by itself: {own}"
            );
        }
        assert_ne!(fixture.report("a", "a:1", (0, true), ONE).await.part, "member");
        assert_eq!(fixture.report("b", "a:1", (reply.round, true), TWO).await.shown, "b:2");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_of_the_clock_neither_stop_the_head_nor_drop_live_front_ends() {
    let Some(fixture) = HeadsFixture::new("clock").await else { return };
    // The clock goes back by an hour. A front end that reports no more is waited for no longer than before.
    let soon = |name: &'static str| (name, "300", "0");
    for name in ["a", "b"] {
        fixture.report_with(soon(name), "a:1", (0, false), ONE).await;
    }
    fixture.move_times(3_600_000).await;
    let mut shown = String::new();
    for _ in 0..100 {
        let reply = fixture.report_with(soon("b"), "a:1", (0, false), TWO).await;
        shown = fixture.report_with(soon("b"), "a:1", (reply.round, true), TWO).await.shown;
        if shown == "b:2" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(shown, "b:2", "the store's clock went back");

    // The store's clock goes forward by an hour. A front end that has just reported still counts.
    let Some(fixture) = HeadsFixture::new("clock-forward").await else { return };
    fixture.report("b", "a:1", (0, false), TWO).await;
    fixture.move_times(-3_600_000).await;
    let patient = ("b", LIFETIME, "3000000");
    for _ in 0..3 {
        let reply = fixture.report_with(patient, "a:1", (0, false), TWO).await;
        assert_eq!(
            (reply.next.as_str(), reply.shown.as_str()),
            ("", "a:1"),
            "the store's clock went forward"
        );
    }
}

/// A value that an attacker with access to the store puts there, once.
#[tokio::test(flavor = "multi_thread")]
async fn foreign_values_in_the_store_delay_the_head_only_briefly() {
    let far = "9000000000000";
    let ghost = format!("{far} z:9 1 0 {} z:9,", "f".repeat(64));
    for (number, fields) in [
        ["m:ghost", &ghost],
        ["m:ghost", "x"],
        ["o:ghost", far],
        ["o:ghost", "nan"],
        ["clock", far],
        ["clock", "0"],
        ["clock", "inf"],
        ["raw", far],
        ["born", far],
        ["waiting", far],
        ["alone", far],
        ["lost", far],
        ["next", "z:9"],
        ["round", "9007199254740993"],
        ["round", "4503599627370000"],
        ["round", "-5"],
        ["round", "x"],
        ["at", "4503599627370000"],
        ["at", "x"],
        ["round", "2.5"],
        ["round", "0x2"],
        ["round", "1e1"],
        ["round", " 2"],
        ["at", "2.5"],
        ["at", "0x2"],
        ["at", "1e1"],
        ["at", " 2"],
        ["server", "x"],
        ["else", &"x".repeat(100_000)],
        ["shown", "z:9"],
    ]
    .into_iter()
    .enumerate()
    {
        let Some(mut fixture) = HeadsFixture::new(&format!("forged-{number}")).await else { return };
        let fields_of_hash = fields.map(|text| text.as_bytes().to_vec());
        fixture.store.command::<i64>("HSET", KEY, &fields_of_hash).await.unwrap();
        assert_eq!(fixture.shows(TWO).await, "b:2", "{fields:?}");
    }
    let Some(mut fixture) = HeadsFixture::new("forged-type").await else { return };
    fixture.store.set(KEY, b"text", Duration::from_secs(600)).await.unwrap();
    assert_eq!(fixture.shows(TWO).await, "b:2");
    let Some(mut fixture) = HeadsFixture::new("forged-many").await else { return };
    let many = "for at = 1, 5000 do redis.call('HSET', KEYS[1], 'm:' .. at, 'x') end return 1";
    assert_eq!(fixture.store.script::<u8>(&Script::new(many), KEY, &[]).await.unwrap(), 1);
    assert_eq!(fixture.shows(TWO).await, "b:2");
    assert!(fixture.store.command::<u64>("HLEN", KEY, &[]).await.unwrap() < 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lead_and_a_filter_taken_without_an_expiry_are_released() {
    let Some(fixture) = HeadsFixture::new("taken").await else { return };
    let store = &fixture.store;
    let texts = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>();
    let script = Script::new(include_str!("../../../cluster/src/serve/lead.lua"));
    let lead = async |name: &str| {
        store.script::<u8>(&script, "lead:1", &texts(&[name, "60000", "1"])).await.unwrap()
    };
    store.command::<String>("SET", "lead:1", &texts(&["ghost"])).await.unwrap();
    assert_eq!((lead("a").await, lead("b").await), (1, 0));
    store.command::<String>("SET", "lead:1", &texts(&["ghost", "PX", "9000000000"])).await.unwrap();
    assert_eq!((lead("b").await, lead("a").await), (1, 0));
    store.command::<u8>("DEL", "lead:1", &[]).await.unwrap();
    store.command::<u8>("HSET", "lead:1", &texts(&["x", "y"])).await.unwrap();
    assert_eq!((lead("a").await, lead("b").await), (1, 0));

    let script = Script::new(include_str!("../../../cluster/src/serve/take.lua"));
    let take = async |name: &str| {
        let answer: Vec<Value> =
            store.script(&script, "f:1", &texts(&[name, "60000", "60000"])).await.unwrap();
        String::from_redis_value(answer[0].clone()).unwrap()
    };
    for till in ["9000000000000", "x", "nan"] {
        let fields = texts(&["value", "v", "by", "ghost", "till", till]);
        store.command::<u8>("HSET", "f:1", &fields).await.unwrap();
        assert_eq!(take("a").await, "taken", "{till}");
        assert_eq!(take("b").await, "busy", "{till}");
    }
}
