//! Methods that only servers need. Browser modules leave them out.

pub(super) mod access_list;
pub(super) mod bridge;
pub(super) mod discover;
pub(super) mod proof;
mod row;
pub(super) mod scoring;
pub(super) mod work;

use row::read;
