//! Finds the row of the method table for a request.

use alloc::vec::Vec;

use super::{method::Method, table};

/// The method table with look-up by name.
#[derive(Debug, Clone)]
pub struct Dispatcher {
    /// Sorted by name; aliases point to the same row.
    index: Vec<(&'static str, &'static Method)>,
}

impl Default for Dispatcher {
    fn default() -> Self {
        Self::new(table::methods())
    }
}

impl Dispatcher {
    /// A dispatcher of these rows. A row takes the place of an earlier one of the same name.
    pub fn new(rows: impl IntoIterator<Item = &'static Method>) -> Self {
        let mut index: Vec<(&'static str, &'static Method)> = Vec::new();
        for method in rows {
            for name in core::iter::once(method.name).chain(method.aliases.iter().copied()) {
                let place = index.partition_point(|(before, _)| *before < name);
                match index.get_mut(place) {
                    Some((known, row)) if *known == name => *row = method,
                    _ => index.insert(place, (name, method)),
                }
            }
        }
        Self { index }
    }

    /// The row of this name or alias.
    pub fn find(&self, name: &str) -> Option<&'static Method> {
        let position = self.index.binary_search_by_key(&name, |(known, _)| known).ok()?;
        self.index.get(position).map(|(_, method)| *method)
    }
}
