//! The requests of the admin page. All are POST with JSON, so that no id of a key is in a URL, which proxies and browsers may
//! write to logs.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::response::Response;
use axum::routing::post;
use axum::{Router, middleware};
use rootlight::types::json::Object;
use rootlight_server::keys::{KeyChange, KeySummary};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tracing::info;

use super::overview::Overview;
use super::reply::{AdminError, answer};
use super::{guard, state};
use crate::keys::{DayUsage, ServiceUsage};

/// Longest body, in bytes. A key with the longest lists fits.
const MAX_BODY_BYTES: usize = 1024 * 1024;
/// Keys in a page of the list, unless the request names another number.
const PAGE_KEYS: u32 = 50;
/// Days of a report, unless the request names another number.
const REPORT_DAYS: u32 = 30;

/// The state as handlers get it.
type AdminContext = State<Arc<state::AdminState>>;

/// Requests a page of the list of keys.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ListRequest {
    /// The beginning of the names or ids of the wanted keys; empty for all keys.
    search: String,
    /// `next` of the page before; none for the first page.
    after: Option<String>,
    /// Most keys of the page.
    most: u32,
}

impl Default for ListRequest {
    fn default() -> Self {
        Self { search: String::new(), after: None, most: PAGE_KEYS }
    }
}

/// A page of keys.
#[derive(Serialize)]
struct KeyList {
    keys: Vec<KeySummary>,
    /// Where the next page begins; none on the last page.
    next: Option<String>,
}

/// Makes a key; `change` sets its name and limits.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Create {
    /// [`Object`] refuses a JSON array, which a derived parser would read as the members in their order.
    change: Object<KeyChange>,
}

/// A new key. Its text is sent only now, because only its hash is stored.
#[derive(Serialize)]
struct Created {
    id: String,
    key: String,
}

/// Changes the limits of a key, or its name, which [`KeyChange`] contains too.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Limit {
    id: String,
    change: Object<KeyChange>,
}

/// Revokes a key.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Revoke {
    id: String,
}

/// Requests the usage on the last days.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct UsageRequest {
    /// The key; none for all keys together.
    id: Option<String>,
    days: u32,
}

impl Default for UsageRequest {
    fn default() -> Self {
        Self { id: None, days: REPORT_DAYS }
    }
}

/// The usage of one key or of all.
#[derive(Serialize)]
#[serde(untagged)]
enum UsageReply {
    Key { days: Vec<DayUsage> },
    Service(ServiceUsage),
}

/// The body of a request without parameters: `{}`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// The paths below `/api`, for requests with the token.
pub(super) fn routes(state: &Arc<state::AdminState>) -> Router<Arc<state::AdminState>> {
    Router::new()
        .route("/api/overview", post(overview))
        .route("/api/usage", post(usage))
        .route("/api/keys/list", post(list))
        .route("/api/keys/create", post(create))
        .route("/api/keys/limit", post(limit))
        .route("/api/keys/revoke", post(revoke))
        .route_layer(middleware::from_fn_with_state(state.clone(), guard::token))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
}

/// Reads the JSON object of a body; [`Object`] refuses an array.
fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, AdminError> {
    let Object(read) = serde_json::from_slice(body).map_err(|error| AdminError::body(&error))?;
    Ok(read)
}

async fn overview(State(state): AdminContext, body: Bytes) -> Response {
    let run = async {
        let Nothing {} = read(&body)?;
        Ok(Overview::of(&state).await)
    };
    answer(run.await)
}

async fn usage(State(state): AdminContext, body: Bytes) -> Response {
    let run = async {
        let UsageRequest { id, days } = read(&body)?;
        Ok(match id {
            Some(id) => UsageReply::Key { days: state.keys.usage(&id, days).await? },
            None => UsageReply::Service(state.keys.service_usage(days).await?),
        })
    };
    answer(run.await)
}

async fn list(State(state): AdminContext, body: Bytes) -> Response {
    let run = async {
        let ListRequest { search, after, most } = read(&body)?;
        let page = match search.trim() {
            "" => state.keys.list(after.as_deref(), most).await?,
            text => state.keys.search(text, after.as_deref(), most).await?,
        };
        Ok(KeyList { keys: page.keys, next: page.next })
    };
    answer(run.await)
}

async fn create(State(state): AdminContext, body: Bytes) -> Response {
    let run = async {
        let Create { change: Object(change) } = read(&body)?;
        let (text, record) = state.keys.create(&change).await?;
        info!("admin page: key {} was made", record.id);
        Ok(Created { key: text.reveal(), id: record.id })
    };
    answer(run.await)
}

async fn limit(State(state): AdminContext, body: Bytes) -> Response {
    let run = async {
        let Limit { id, change: Object(change) } = read(&body)?;
        let changed = state.keys.limit(&id, &change).await?;
        info!("admin page: the limits of key {} were changed", changed.id);
        Ok(changed)
    };
    answer(run.await)
}

async fn revoke(State(state): AdminContext, body: Bytes) -> Response {
    let run = async {
        let Revoke { id } = read(&body)?;
        let revoked = state.keys.revoke(&id).await?;
        info!("admin page: key {} was revoked", revoked.id);
        Ok(revoked)
    };
    answer(run.await)
}
