//! Options that JavaScript gives: an object's members, read by serde-wasm-bindgen.

use js_sys::{Array, Object, Reflect};
use rootlight::rpc::envelope::{BATCH_LIMIT, MAX_BATCH};
use serde::de::DeserializeOwned;
use wasm_bindgen::{JsCast, JsValue};

/// The members of an object.
pub(crate) struct Members<'a> {
    object: &'a JsValue,
    /// The object's name in errors.
    name: &'static str,
}

impl<'a> Members<'a> {
    /// Takes an object whose members all have one of the `known` names. `name` is the object's own, in errors.
    pub(crate) fn of(object: &'a JsValue, name: &'static str, known: &[&str]) -> Result<Self, String> {
        let Some(of) = object.dyn_ref::<Object>() else { return Err(format!("{name}: not an object")) };
        for entry in Object::entries(of) {
            let entry: Array = entry.unchecked_into();
            let member = entry.get(0).as_string().unwrap_or_default();
            if !known.contains(&member.as_str()) && !entry.get(1).is_undefined() {
                return Err(format!("{name}: unknown field `{member}`"));
            }
        }
        Ok(Self { object, name })
    }

    /// A member as it is; undefined if it is missing.
    pub(crate) fn raw(&self, member: &str) -> JsValue {
        Reflect::get(self.object, &member.into()).unwrap_or_default()
    }

    /// A member; `None` if it is missing or null. `wanted` says in errors what it must be.
    fn get<T: DeserializeOwned>(&self, member: &str, wanted: &str) -> Result<Option<T>, String> {
        serde_wasm_bindgen::from_value(self.raw(member))
            .map_err(|_| format!("{}: {member}: not {wanted}", self.name))
    }

    /// A whole number.
    pub(crate) fn number(&self, member: &str) -> Result<Option<u64>, String> {
        self.get(member, "a whole number")
    }

    /// The most calls of one batch of callers.
    pub(crate) fn batch_limit(&self) -> Result<usize, String> {
        match self.number("batchLimit")? {
            None => Ok(BATCH_LIMIT),
            Some(most) if (1..=MAX_BATCH as u64).contains(&most) => Ok(most as usize),
            Some(_) => Err(format!("{}: batchLimit: not from 1 to {MAX_BATCH}", self.name)),
        }
    }

    /// A text.
    pub(crate) fn text(&self, member: &str) -> Result<Option<String>, String> {
        self.get(member, "a text")
    }

    /// A list of texts.
    pub(crate) fn texts(&self, member: &str) -> Result<Vec<String>, String> {
        Ok(self.get(member, "a list of texts")?.unwrap_or_default())
    }
}
