//! The filters, blocks, contracts and overrides that the parameters of a call refer to. Servers check by them the rules of API
//! keys. Each parameter is read by the parser of its handler, so that a rule is applied to exactly what the handler would use.

use alloc::{boxed::Box, vec::Vec};

use alloy_primitives::Address;
use serde_json::value::RawValue;

#[cfg(feature = "catalogue")]
use super::storage_values;
use super::{
    call_object, debug, dev, filters, logs,
    message::Call,
    method::{Method, ParamSubject},
    params::{BlockParam, Params},
    simulate, trace,
};
use crate::types::Transaction;

impl Call {
    /// The parameters; `None` if the method does not exist or their number is wrong, because no handler runs then.
    pub fn params(&self) -> Option<Params<'_>> {
        let row = self.row?;
        Params::new(&self.params, row.required(), row.params.len()).ok()
    }

    /// The id of the filter that the call polls, reads or removes.
    pub fn filter(&self) -> Option<u128> {
        let row = self.row.filter(|row| row.is_about_filters())?;
        let names_filter = row.params.first().is_some_and(|param| param.subject == ParamSubject::Filter);
        filters::id(self.params().filter(|_| names_filter)?).ok()?
    }

    /// The numbers of blocks that the parameters state, as block parameters or as ends of ranges. The block in a state context
    /// (`debug_traceCallMany`) is left out.
    pub fn blocks(&self) -> Vec<u64> {
        let (Some(row), Some(params)) = (self.row, self.params()) else { return Vec::new() };
        let named = row.params.iter().enumerate().flat_map(|(position, param)| match param.kind {
            "BLOCK" => params.any_block(position).into_iter().collect(),
            "LOG_FILTER" => logs::ends(params, position),
            "TRACE_FILTER" => trace::TraceFilter::ends(params),
            _ => Vec::new(),
        });
        let number = |block| match block {
            BlockParam::Number(number, _) => number,
            _ => None,
        };
        named.filter_map(number).collect()
    }
}

impl Method {
    /// The contracts that the parameters of a call of this method refer to; `None` if they may refer to any: a filter
    /// without an address, the creation of a contract, or a parameter that the handler refuses.
    pub fn contracts(&self, values: &[Box<RawValue>]) -> Option<Vec<Address>> {
        let mut all = Vec::new();
        // With a wrong number of parameters, no handler runs.
        let Ok(params) = Params::new(values, self.required(), self.params.len()) else { return Some(all) };
        for (position, param) in self.params.iter().enumerate() {
            match param.subject {
                ParamSubject::Plain
                | ParamSubject::Account
                | ParamSubject::Overrides
                | ParamSubject::CallOptions
                | ParamSubject::Filter
                | ParamSubject::Block => {}
                ParamSubject::Contract => all.push(params.address(position).ok()?),
                #[cfg(feature = "catalogue")]
                ParamSubject::Cells => all.extend(storage_values::contracts(params)?),
                #[cfg(not(feature = "catalogue"))]
                ParamSubject::Cells => return None,
                ParamSubject::Call => all.push(call_object::message(params).ok()?.to?),
                ParamSubject::Simulation => all.extend(simulate::contracts(params)?),
                ParamSubject::Bundles => all.extend(debug::contracts(params)?),
                ParamSubject::TracedCalls => all.extend(trace::contracts(params)?),
                ParamSubject::Transaction => all.push(dev::receiver(params)?),
                ParamSubject::Signed => all.push(Transaction::decode(&params.data(position).ok()?).ok()?.to?),
                ParamSubject::Transactions if params.is_given(position) => return None,
                ParamSubject::Transactions => {}
                ParamSubject::Logs => all.extend(logs::senders(params, position)?),
                ParamSubject::Subscription if filters::is_of_logs(params) => {
                    all.extend(logs::senders(params, position)?);
                }
                ParamSubject::Subscription => {}
                ParamSubject::Traces => all.extend(trace::TraceFilter::receivers(params)?),
            }
        }
        Some(all)
    }

    /// Whether a call of this method overrides state, also if its handler refuses the overrides.
    pub fn overrides(&self, values: &[Box<RawValue>]) -> bool {
        let Ok(params) = Params::new(values, self.required(), self.params.len()) else { return false };
        self.params.iter().enumerate().any(|(position, param)| match param.subject {
            ParamSubject::Overrides => {
                call_object::overrides(params, position).map_or(true, |given| !given.accounts.is_empty())
            }
            ParamSubject::CallOptions => debug::overrides(params, position),
            // Some methods take a simulation in place of a call (`rootlight_getWitness`).
            ParamSubject::Simulation | ParamSubject::Call => simulate::overrides(params),
            // Parameters with other subjects have no overrides of state.
            _ => false,
        })
    }
}
