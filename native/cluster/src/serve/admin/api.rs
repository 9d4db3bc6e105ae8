//! The requests of the page. All are POST with JSON, so that no key's id is in a URL, which logs may keep.

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

/// Longest body, in bytes. The longest lists of a key fit.
const BODY: usize = 1024 * 1024;
/// Keys of a page, unless another number is asked for.
const PAGE: u32 = 50;
/// Days of a report, unless another number is asked for.
const DAYS: u32 = 30;

type AdminContext = State<Arc<state::AdminState>>;

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ListRequest {
    /// How their names or ids begin.
    search: String,
    /// Where the page before ended.
    after: Option<String>,
    most: u32,
}

impl Default for ListRequest {
    fn default() -> Self {
        Self { search: String::new(), after: None, most: PAGE }
    }
}

/// A page of keys.
#[derive(Serialize)]
struct KeyList {
    keys: Vec<KeySummary>,
    next: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Create {
    change: Object<KeyChange>,
}

/// A new key. Its text is shown this once.
#[derive(Serialize)]
struct Created {
    id: String,
    key: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Limit {
    id: String,
    change: Object<KeyChange>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Revoke {
    id: String,
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct UsageRequest {
    id: Option<String>,
    days: u32,
}

impl Default for UsageRequest {
    fn default() -> Self {
        Self { id: None, days: DAYS }
    }
}

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

/// The addresses below `/api`, for requests with the token.
pub(super) fn routes(state: &Arc<state::AdminState>) -> Router<Arc<state::AdminState>> {
    Router::new()
        .route("/api/overview", post(overview))
        .route("/api/usage", post(usage))
        .route("/api/keys/list", post(list))
        .route("/api/keys/create", post(create))
        .route("/api/keys/limit", post(limit))
        .route("/api/keys/revoke", post(revoke))
        .route_layer(middleware::from_fn_with_state(state.clone(), guard::token))
        .layer(DefaultBodyLimit::max(BODY))
}

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
