//! Finds keys by the beginning of their names and ids, page by page. A page reads only its own rows, and those of keys whose
//! name and id both begin with the text.

use rootlight_server::keys::{KeyRecord, KeyUsage, is_id};
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::error::ClusterKeyError;
use super::rows::{self, to_bigint};

/// Longest text that is searched for, in bytes: that of the longest name.
const MAX_TEXT: usize = 200;

/// The highest character. A text with this one added comes after all texts that begin with the text.
const LAST: char = '\u{10FFFF}';

/// The condition that a name begins with the text $1; $2 is the text with [`LAST`] added.
const NAMED: &str = "lower(k.name) COLLATE \"C\" >= lower($1) COLLATE \"C\" \
    AND lower(k.name) COLLATE \"C\" < lower($2) COLLATE \"C\"";

/// Where a page begins: keys found by their names come first, then keys found only by their ids.
enum PageStart<'a> {
    /// Among the names, after the key with this id; `None` for the first.
    Names(Option<&'a str>),
    /// Among the ids, after this id; `None` for the first.
    Ids(Option<&'a str>),
}

/// Reads where the page before ended: `name.ID` or `id.ID`. `None` for a text that no page returns.
fn parse_cursor(cursor: Option<&str>) -> Option<PageStart<'_>> {
    let Some(cursor) = cursor else { return Some(PageStart::Names(None)) };
    let (kind, id) = cursor.split_once('.')?;
    match kind {
        "name" if is_id(id) => Some(PageStart::Names(Some(id))),
        "id" if is_id(id) => Some(PageStart::Ids(Some(id))),
        _ => None,
    }
}

/// Whether an id may begin with this text: ids have 8 letters of base32, in lower case.
fn begins_id(text: &str) -> bool {
    text.len() <= 8 && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'2'..=b'7'))
}

/// The keys of a page, and the cursor of the next page; `None` on the last one. `today` is in days since 1970.
pub(super) async fn search(
    client: &Client,
    text: &str,
    cursor: Option<&str>,
    most: usize,
    today: u64,
) -> Result<(Vec<(KeyRecord, KeyUsage)>, Option<String>), ClusterKeyError> {
    let (mut found, mut next) = (Vec::new(), None);
    let usable = text.len() <= MAX_TEXT && !text.chars().any(char::is_control);
    let Some(start) = parse_cursor(cursor).filter(|_| usable) else { return Ok((found, next)) };
    let ids_after = match start {
        PageStart::Ids(after) => after,
        PageStart::Names(after) => {
            // One key more shows whether there is a further page.
            found = names(client, text, after, most.saturating_add(1), today).await?;
            None
        }
    };
    let named = found.len();
    if named <= most && begins_id(text) {
        let rest = most.saturating_add(1).saturating_sub(named);
        found.extend(ids(client, text, ids_after, rest, today).await?);
    }
    if found.len() > most {
        found.truncate(most);
        let kind = if found.len() <= named { "name" } else { "id" };
        next = found.last().map(|(key, _)| format!("{kind}.{}", key.id));
    }
    Ok((found, next))
}

/// Keys whose names begin with a text, by name and then by number.
async fn names(
    client: &Client,
    text: &str,
    after: Option<&str>,
    most: usize,
    today: u64,
) -> Result<Vec<(KeyRecord, KeyUsage)>, ClusterKeyError> {
    let end = format!("{text}{LAST}");
    let (after_name, after_number) = match after {
        // The text itself is the lowest name, so the database begins to read the index there. Numbers of keys begin at 1.
        None => (text.to_owned(), 0),
        Some(id) => {
            let query = "SELECT name, number FROM service.keys WHERE id = $1";
            let Some(row) = client.query_typed_opt(query, &[(&id, Type::TEXT)]).await? else {
                return Ok(Vec::new());
            };
            (row.try_get(0)?, row.try_get(1)?)
        }
    };
    let chosen = format!(
        "WHERE {NAMED} AND (lower(k.name) COLLATE \"C\", k.number) > (lower($3) COLLATE \"C\", $4) \
         ORDER BY lower(k.name) COLLATE \"C\", k.number LIMIT $5"
    );
    rows::select(
        client,
        &chosen,
        "lower(k.name) COLLATE \"C\", k.number",
        &[
            (&text, Type::TEXT),
            (&end, Type::TEXT),
            (&after_name, Type::TEXT),
            (&after_number, Type::INT4),
            (&limit(most), Type::INT8),
        ],
        today,
    )
    .await
}

/// Keys whose ids, but not names, begin with a text, by id.
async fn ids(
    client: &Client,
    text: &str,
    after: Option<&str>,
    most: usize,
    today: u64,
) -> Result<Vec<(KeyRecord, KeyUsage)>, ClusterKeyError> {
    let (end, after) = (format!("{text}{LAST}"), after.unwrap_or_default());
    let chosen = format!(
        "WHERE k.id COLLATE \"C\" >= $1 AND k.id COLLATE \"C\" < $2 AND k.id COLLATE \"C\" > $3 AND NOT ({NAMED}) \
         ORDER BY k.id COLLATE \"C\" LIMIT $4"
    );
    rows::select(
        client,
        &chosen,
        "k.id COLLATE \"C\"",
        &[(&text, Type::TEXT), (&end, Type::TEXT), (&after, Type::TEXT), (&limit(most), Type::INT8)],
        today,
    )
    .await
}

/// The value of `LIMIT`.
fn limit(most: usize) -> i64 {
    to_bigint(u64::try_from(most).unwrap_or(u64::MAX))
}
