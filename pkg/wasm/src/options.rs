//! Reads options that JavaScript gives, the members of an object, and refuses members with unknown names.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use js_sys::{Array, Number, Object, Reflect};
use rootlight::rpc::envelope::{BATCH_LIMIT, MAX_BATCH};
use wasm_bindgen::{JsCast, JsValue};

/// The members of an object.
pub(crate) struct OptionMembers<'a> {
    object: &'a JsValue,
    /// The object's name in errors.
    name: &'static str,
}

impl<'a> OptionMembers<'a> {
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

    /// A member as `read` converts it; `None` if it is missing or null. `wanted` says in errors what it must be.
    fn get<T>(
        &self,
        member: &str,
        wanted: &str,
        read: fn(JsValue) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let value = self.raw(member);
        if value.is_undefined() || value.is_null() {
            return Ok(None);
        }
        read(value).map(Some).ok_or_else(|| format!("{}: {member}: not {wanted}", self.name))
    }

    /// A whole number, given as a number or a `bigint`.
    pub(crate) fn number(&self, member: &str) -> Result<Option<u64>, String> {
        self.get(member, "a whole number", |value| match value.as_f64() {
            // Greater numbers are rounded in JavaScript: the caller may have meant another one.
            Some(number) if number.abs() <= Number::MAX_SAFE_INTEGER => {
                Some(number as u64).filter(|whole| *whole as f64 == number)
            }
            Some(_) => None,
            None => u64::try_from(value).ok(),
        })
    }

    /// The option `batchLimit`: the most calls of one batch of a caller.
    pub(crate) fn batch_limit(&self) -> Result<usize, String> {
        match self.number("batchLimit")? {
            None => Ok(BATCH_LIMIT),
            Some(most) if (1..=MAX_BATCH as u64).contains(&most) => Ok(most as usize),
            Some(_) => Err(format!("{}: batchLimit: not from 1 to {MAX_BATCH}", self.name)),
        }
    }

    /// A string.
    pub(crate) fn text(&self, member: &str) -> Result<Option<String>, String> {
        self.get(member, "a text", |value| value.as_string())
    }

    /// A list of strings; empty if the member is missing.
    pub(crate) fn texts(&self, member: &str) -> Result<Vec<String>, String> {
        let read = |list: JsValue| {
            Array::is_array(&list)
                .then(|| Array::from(&list).iter().map(|text| text.as_string()).collect())?
        };
        Ok(self.get(member, "a list of texts", read)?.unwrap_or_default())
    }
}
