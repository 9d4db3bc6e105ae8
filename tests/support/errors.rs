//! The errors that docs/errors.md lists.

/// Whether an error is the documented one of this cause, about the upstream of this name.
pub(crate) fn is_documented(cause: &str, name: &str, error: &str) -> bool {
    let page = include_str!("../../docs/errors.md");
    let start = format!("| {cause} | `");
    let row = page.lines().find_map(|line| line.strip_prefix(start.as_str())?.strip_suffix("` |"));
    let words = row.unwrap_or_else(|| panic!("docs/errors.md has no row {cause}")).replace("UPSTREAM", name);
    let mut rest = error;
    words.split('…').all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}
