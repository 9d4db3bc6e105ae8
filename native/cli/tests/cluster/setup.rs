//! A service: PostgreSQL, the store, and front ends in this process.

use std::sync::Arc;

use rootlight_cluster::keys::{ClusterAccess, ClusterKeyError, ClusterKeys};
use rootlight_cluster::store::HotStore;
use rootlight_index::Database;
use rootlight_index::testkit::{PostgresServer, client_config, postgres};
use rootlight_server::keys::{Charge, KeyChange, KeyLookup as _, KeyRecord};

use crate::servers::Servers;

/// PostgreSQL, the store, and front ends.
pub(crate) struct Service {
    pub(crate) front_ends: Vec<Arc<ClusterAccess>>,
    pub(crate) admin: ClusterKeys,
    pub(crate) database: Database,
    /// Kept running.
    _postgres: Arc<PostgresServer>,
}

pub(crate) fn database(address: &str) -> Database {
    Database::parse(address, client_config()).unwrap()
}

/// A message of so many plain requests.
pub(crate) fn charge(requests: u32) -> Charge {
    Charge { requests, weight: requests.into(), classes: vec![("eth", requests)] }
}

/// A front end's keys. On a busy machine the schema may take longer than a front end waits for it.
async fn open(database: &Database, store: Arc<HotStore>) -> Arc<ClusterAccess> {
    loop {
        match ClusterAccess::open(database, store.clone()).await {
            Err(ClusterKeyError::Slow) => {}
            opened => return opened.unwrap(),
        }
    }
}

impl Service {
    /// Front ends with a database of their own.
    pub(crate) async fn start(servers: &Servers, prefix: &str, count: usize) -> Option<Self> {
        Self::with(postgres()?, servers, prefix, count).await
    }

    /// The same with a server of PostgreSQL that the test may end.
    pub(crate) async fn with(
        postgres: Arc<PostgresServer>,
        servers: &Servers,
        prefix: &str,
        count: usize,
    ) -> Option<Self> {
        let address = postgres.database().await;
        Some(Self::at(postgres, &address, servers, prefix, count).await)
    }

    /// The same with a database that exists.
    pub(crate) async fn at(
        postgres: Arc<PostgresServer>,
        address: &str,
        servers: &Servers,
        prefix: &str,
        count: usize,
    ) -> Self {
        let database = database(address);
        let mut front_ends = Vec::new();
        for _ in 0..count {
            let store = servers.connect(prefix).await;
            front_ends.push(open(&database, store).await);
        }
        let admin = ClusterKeys::open(database.clone(), Some(servers.connect(prefix).await)).await.unwrap();
        Self { front_ends, admin, database, _postgres: postgres }
    }

    /// Makes a key; returns what a front end finds.
    pub(crate) async fn key(&self, change: &KeyChange) -> Arc<KeyRecord> {
        let (text, record) = self.admin.create(change).await.unwrap();
        let found = self.front_ends[0].find(text.id()).await.unwrap().unwrap();
        assert_eq!(*found, record);
        found
    }

    pub(crate) async fn number(&self, query: &str) -> i64 {
        let client = self.database.connect().await.unwrap();
        client.query_one(query, &[]).await.unwrap().get(0)
    }
}
