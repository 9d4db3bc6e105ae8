//! The clients of the service.

mod filters;
mod quotas;
mod readers;
mod senders;
mod subscriptions;

use std::sync::Arc;

pub(crate) use filters::poll;
pub(crate) use quotas::{Admitted, Limited, flood};
pub(crate) use readers::read;
pub(crate) use senders::send;
pub(crate) use subscriptions::subscribe;

use crate::balancer::{Balancer, UsedKey};
use crate::chain::ServiceChain;
use crate::conditions::Conditions;

#[derive(Clone)]
pub(crate) struct TestClient {
    pub(crate) balancer: Arc<Balancer>,
    pub(crate) chain: Arc<ServiceChain>,
    pub(crate) conditions: Arc<Conditions>,
    pub(crate) key: Arc<UsedKey>,
    /// Pause between two rounds.
    pub(crate) pause: std::time::Duration,
}
