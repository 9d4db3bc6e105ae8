//! What the parameters of a call refer to, for rules about contracts and overrides. Each parameter is read by the parser of
//! its handler, so that a rule sees what would be executed.

use alloc::{boxed::Box, vec::Vec};

use alloy_primitives::Address;
use serde_json::value::RawValue;

use super::{
    dev, filters, logs, message,
    method::{Method, Subject},
    params::Params,
    trace,
};
use crate::types::Transaction;

impl Method {
    /// The contracts that the parameters of a call of this method refer to; `None` if they may refer to any: a filter without an
    /// address, the creation of a contract, or a parameter that the handler refuses.
    pub fn contracts(&self, values: &[Box<RawValue>]) -> Option<Vec<Address>> {
        let mut all = Vec::new();
        // With too few parameters or too many, no handler runs.
        let Ok(params) = Params::new(values, self.required(), self.params.len()) else { return Some(all) };
        for (position, param) in self.params.iter().enumerate() {
            match param.subject {
                Subject::Plain | Subject::Account | Subject::Overrides | Subject::Filter | Subject::Block => {
                }
                Subject::Contract => all.push(params.address(position).ok()?),
                Subject::Call => all.push(message::message(params).ok()?.to?),
                Subject::Transaction => all.push(dev::receiver(params)?),
                Subject::Signed => all.push(Transaction::decode(&params.data(position).ok()?).ok()?.to?),
                Subject::Logs => all.extend(logs::senders(params, position)?),
                Subject::Subscription if filters::is_of_logs(params) => {
                    all.extend(logs::senders(params, position)?);
                }
                Subject::Subscription => {}
                Subject::Traces => all.extend(trace::Filter::receivers(params)?),
            }
        }
        Some(all)
    }

    /// Whether a call of this method has overrides of state, or some that its handler refuses.
    pub fn overrides(&self, values: &[Box<RawValue>]) -> bool {
        let Ok(params) = Params::new(values, self.required(), self.params.len()) else { return false };
        let has_some = || message::overrides(params).map_or(true, |given| !given.accounts.is_empty());
        self.params.iter().any(|param| param.subject == Subject::Overrides) && has_some()
    }
}
