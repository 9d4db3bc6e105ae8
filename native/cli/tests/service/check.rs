//! The whole check: load, faults, and what is compared afterwards.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fastrand::Rng;
use rootlight_index::Database;
use rootlight_index::testkit::client_config;
use tokio::task::JoinHandle;

use crate::balancer::UsedKey;
use crate::clients::{self, Limited, TestClient};
use crate::conditions::Conditions;
use crate::faults::Striker;
use crate::report::{KeyUse, ServiceReport};
use crate::running_service::RunningService;
use crate::settings::Settings;
use crate::tally::CALM;
use crate::view::View;

/// Longest wait for the end of the clients.
const PATIENCE: Duration = Duration::from_secs(90);
/// Limits of keys: requests per second, and at once.
const LIMITS: [(u64, u64); 2] = [(10, 20), (40, 60)];

/// The clients of a run.
struct Load {
    conditions: Arc<Conditions>,
    views: Vec<Arc<View>>,
    limited: Vec<Arc<Limited>>,
    tasks: Vec<JoinHandle<()>>,
    senders: Vec<JoinHandle<u64>>,
    /// The key of questions about health.
    key: Arc<UsedKey>,
}

impl Load {
    fn start(service: &RunningService, settings: &Settings) -> Self {
        let conditions = Arc::new(Conditions::default());
        let key = service.key(&["--name", "clients"]);
        let client = |key: &Arc<UsedKey>, millis| TestClient {
            balancer: service.balancer.clone(),
            chain: service.chain.clone(),
            conditions: conditions.clone(),
            key: key.clone(),
            pause: settings.pause(millis),
        };
        let (mut tasks, mut views, mut limited) = (Vec::new(), Vec::new(), Vec::new());
        let mut view = |name, may_repeat| {
            let view = View::new(name, &service.chain, &service.tally, &conditions, may_repeat);
            views.push(view.clone());
            view
        };
        for number in 0..3 {
            tasks.push(tokio::spawn(clients::read(client(&key, 60), settings.seed + number)));
        }
        for name in ["subscriber 0", "subscriber 1"] {
            tasks.push(tokio::spawn(clients::subscribe(client(&key, 60), view(name, false))));
        }
        for name in ["poller 0", "poller 1"] {
            tasks.push(tokio::spawn(clients::poll(client(&key, 250), view(name, true))));
        }
        for (per_second, burst) in LIMITS {
            let (rps, at_once) = (per_second.to_string(), burst.to_string());
            let key = service.key(&["--name", "limited", "--rps", &rps, "--burst", &at_once]);
            let quota = Limited::new(per_second, burst);
            for _ in 0..2 {
                // Both together send twice what is admitted, whatever the rate of the other clients is.
                let flood =
                    TestClient { pause: Duration::from_millis(1_000 / per_second), ..client(&key, 0) };
                tasks.push(tokio::spawn(clients::flood(flood, quota.clone())));
            }
            limited.push(quota);
        }
        tasks.push(tokio::spawn(mine(service.chain.clone(), conditions.clone(), settings.block)));
        let accounts = service.chain.accounts.iter().take(2);
        let senders =
            accounts.map(|account| tokio::spawn(clients::send(client(&key, 250), account.clone()))).collect();
        Self { conditions, views, limited, tasks, senders, key }
    }

    /// Waits until all clients have been told of all blocks.
    async fn settle(&self, service: &RunningService) {
        let last = service.chain.head().number;
        futures::future::join_all(self.views.iter().map(|view| view.settle(last))).await;
    }

    /// Ends the clients; returns the number of transactions with a receipt.
    async fn end(&mut self) -> u64 {
        self.conditions.over.store(true, Ordering::SeqCst);
        for task in self.tasks.drain(..) {
            tokio::time::timeout(PATIENCE, task).await.expect("the clients end").expect("no client panics");
        }
        let mut transactions = 0;
        for task in self.senders.drain(..) {
            transactions += tokio::time::timeout(PATIENCE, task).await.expect("the clients end").unwrap();
        }
        transactions
    }
}

async fn mine(chain: Arc<crate::chain::ServiceChain>, conditions: Arc<Conditions>, pause: Duration) {
    while !conditions.is_over() {
        chain.mine().await;
        tokio::time::sleep(pause).await;
    }
}

/// Runs the whole check; `None` if a server is not installed.
pub(crate) async fn run(settings: Settings) -> Option<ServiceReport> {
    println!("ROOTLIGHT_SERVICE_SEED={}", settings.seed);
    let mut service = RunningService::start().await?;
    let mut load = Load::start(&service, &settings);
    let (started, first) = (Instant::now(), service.chain.head().number);
    service.healthy(&load.key).await;
    let left_out = strike_all(&mut service, &load, &settings).await;
    load.settle(&service).await;
    let transactions = load.end().await;
    service.healthy(&load.key).await;
    let (seconds, blocks) = (started.elapsed().as_secs(), service.chain.head().number - first);
    let memory = service.memory.usage();
    let index_is_right = index_is_right(&service).await;
    for program in &mut service.front_ends {
        let status = program.end().await;
        assert!(status.success(), "a front end ends with {status}: {}", program.said());
    }
    let usage = usage(&service).await;
    let (by_fault, examples) = service.tally.end();
    Some(ServiceReport {
        seed: settings.seed,
        seconds,
        blocks,
        transactions,
        left_out,
        by_fault,
        quotas: load.limited.iter().map(|limited| limited.counts()).collect(),
        usage,
        memory,
        index_is_right,
        examples,
    })
}

/// Lets one fault after another happen; returns those that cannot happen here.
async fn strike_all(service: &mut RunningService, load: &Load, settings: &Settings) -> Vec<String> {
    let (mut random, mut left_out) = (Rng::with_seed(settings.seed), Vec::new());
    let count = settings.faults.len();
    for (number, fault) in settings.faults.iter().enumerate() {
        let began = Instant::now();
        if let Some(lack) = fault.lacks(service) {
            left_out.push(format!("{}: {lack}", fault.name()));
            continue;
        }
        service.tally.begin(fault.name());
        if fault.is_of_store() {
            load.conditions.store_fails();
        }
        let mut striker = Striker { service, random: &mut random, key: &load.key, length: settings.length };
        striker.strike(*fault).await;
        let struck = began.elapsed();
        service.healthy(&load.key).await;
        let healthy = began.elapsed();
        load.conditions.store_is_well();
        load.settle(service).await;
        let well = began.elapsed();
        let name = fault.name();
        println!(
            "{} of {count}: {name} for {struck:.1?}, healthy after {healthy:.1?}, events after {well:.1?}",
            number + 1
        );
        service.tally.begin(CALM);
        while began.elapsed() < settings.interval {
            service.memory.sample(&service.front_ends);
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
    left_out
}

/// Whether the index has the blocks of the chain.
async fn index_is_right(service: &RunningService) -> bool {
    let (first, last) = (service.chain.oldest(), service.chain.head().number);
    let client = Database::parse(&service.index, client_config()).unwrap().connect().await.unwrap();
    let query = "SELECT '0x' || encode(hash, 'hex') FROM rootlight.blocks WHERE number BETWEEN $1 AND $2 ORDER BY number";
    let rows = client.query(query, &[&(first as i64), &(last as i64)]).await.unwrap();
    let found: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let expected: Vec<String> =
        (first..=last).filter_map(|at| Some(service.chain.canonical(at)?.hash.clone())).collect();
    found == expected
}

/// How the keys were used, as the clients and the database say.
async fn usage(service: &RunningService) -> Vec<KeyUse> {
    let keys = service.balancer.keys.lock().unwrap().clone();
    let mut usage = Vec::new();
    for key in keys {
        let id = key.id();
        let query = format!(
            "SELECT coalesce((SELECT requests FROM service.usage JOIN service.keys USING (number) WHERE id = '{id}'), 0)"
        );
        usage.push(KeyUse {
            key: id.to_owned(),
            answered: key.answered.load(Ordering::SeqCst),
            unknown: key.unknown.load(Ordering::SeqCst),
            unwritten: key.unwritten.load(Ordering::SeqCst),
            counted: service.number(&query).await.unwrap() as u64,
        });
    }
    usage
}
