//! Filters that are polled at one front end after another.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::TestClient;
use crate::balancer::CallFailure;
use crate::chain::number;
use crate::tally::Bad;
use crate::view::View;

/// Pause before the next front end is asked.
const PAUSE: Duration = Duration::from_millis(10);

struct ClientFilters {
    blocks: Value,
    logs: Value,
    /// How often the store may have lost filters before these were made.
    losses: u64,
}

enum Polled {
    News(Vec<Value>),
    /// The answer was lost with a front end.
    Lost,
    /// There is no such filter.
    Gone,
}

/// Polls until the run is over.
pub(crate) async fn poll(client: TestClient, view: Arc<View>) {
    let mut filters = None;
    while !client.conditions.is_over() {
        filters = match filters.take() {
            None => client.make_filters(&view).await,
            Some(filters) => client.poll_both(filters, &view).await,
        };
        tokio::time::sleep(client.pause).await;
    }
}

impl TestClient {
    async fn asked(&self, method: &str, params: Value) -> Option<Value> {
        self.balancer.ask(&self.key, method, params).await.ok()
    }

    /// Makes filters, and fetches what came between the last ones and these.
    async fn make_filters(&self, view: &View) -> Option<ClientFilters> {
        let losses = self.conditions.losses();
        let blocks = self.asked("eth_newBlockFilter", json!([])).await?;
        let logs = self.asked("eth_newFilter", json!([{"address": self.chain.contract}])).await?;
        let mut heads = Vec::new();
        let mut block = self.asked("eth_getBlockByNumber", json!(["latest", false])).await?;
        let last = block["number"].clone();
        loop {
            let hash = block["hash"].as_str()?.to_owned();
            if view.has(&hash) {
                break;
            }
            heads.insert(0, hash);
            if view.is_empty() {
                break;
            }
            block = self.asked("eth_getBlockByHash", json!([block["parentHash"], false])).await?;
        }
        let first = number(if heads.is_empty() { &last } else { &block["number"] });
        // The filter of blocks may have told of several blocks whose logs were lost with the other filter.
        let first = format!("{:#x}", view.unchecked().map_or(first, |unchecked| unchecked.min(first)));
        let range = json!([{"address": self.chain.contract, "fromBlock": first, "toBlock": last}]);
        let fetched = self.asked("eth_getLogs", range).await?;
        view.fetched(&heads, fetched.as_array()?);
        Some(ClientFilters { blocks, logs, losses })
    }

    async fn poll_both(&self, filters: ClientFilters, view: &View) -> Option<ClientFilters> {
        let (mut blocks, mut logs) = (Vec::new(), Vec::new());
        let mut gone = false;
        for (id, news) in [(&filters.blocks, &mut blocks), (&filters.logs, &mut logs)] {
            match self.poll_one(id).await {
                Polled::News(told) => *news = told,
                Polled::Lost => gone = true,
                Polled::Gone => {
                    gone = true;
                    if filters.losses == self.conditions.losses() {
                        self.balancer.tally.bad(Bad::Lost, 1, &format!("filter {id} is gone"));
                    }
                }
            }
        }
        blocks.iter().filter_map(Value::as_str).for_each(|hash| view.tell_head(hash));
        logs.iter().for_each(|log| view.tell_log(log));
        if !gone {
            return Some(filters);
        }
        for id in [&filters.blocks, &filters.logs] {
            self.asked("eth_uninstallFilter", json!([id])).await;
        }
        None
    }

    async fn poll_one(&self, id: &Value) -> Polled {
        while !self.conditions.is_over() {
            let turn = self.balancer.turn();
            match self.balancer.attempt(turn, &self.key, "eth_getFilterChanges", &json!([id])).await {
                Ok(news) => return Polled::News(news.as_array().cloned().unwrap_or_default()),
                Err(CallFailure::Rpc { status: 200, message, .. }) if message.contains("not found") => {
                    return Polled::Gone;
                }
                Err(failure) if failure.is_harmless() => tokio::time::sleep(PAUSE).await,
                Err(CallFailure::Broken | CallFailure::Silent) => return Polled::Lost,
                Err(failure) => {
                    self.balancer.judge("eth_getFilterChanges", &failure);
                    return Polled::Lost;
                }
            }
        }
        Polled::News(Vec::new())
    }
}
