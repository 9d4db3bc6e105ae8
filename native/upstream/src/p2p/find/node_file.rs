//! The file of discovered nodes in a data folder.

use std::path::Path;
use std::{fs, io};

use rootlight_limits::files;
use serde::{Deserialize, Serialize};

use super::known::{KnownNode, MAX_NODES, StoredNode};

/// Name of the file.
pub const FILE: &str = "nodes.json";

/// Version of the file's format.
const VERSION: u64 = 1;

/// Longest file that is read, in bytes. The file of a full `NodeList` is shorter.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The contents of the file.
#[derive(Debug, Serialize, Deserialize)]
struct NodeFile {
    version: u64,
    /// Number of the peer-to-peer network.
    network: u64,
    nodes: Vec<StoredNode>,
}

/// Reads the nodes of a peer-to-peer network that are stored in a folder; none if there is no file.
///
/// # Errors
/// The file cannot be read, is damaged, or has nodes of another network.
pub fn read_node_file(folder: &Path, network: u64) -> io::Result<Vec<KnownNode>> {
    let bytes = match files::read(&folder.join(FILE), MAX_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        bytes => bytes?,
    };
    let stored: NodeFile = serde_json::from_slice(&bytes)?;
    if (stored.version, stored.network) != (VERSION, network) {
        return Err(io::Error::other("its nodes are of another network, or its form is of another version"));
    }
    Ok(stored.nodes.into_iter().filter_map(StoredNode::known).take(MAX_NODES).collect())
}

/// The text of the file.
pub(super) fn text<'a>(network: u64, nodes: impl Iterator<Item = &'a KnownNode>) -> Option<String> {
    let stored = NodeFile { version: VERSION, network, nodes: nodes.map(StoredNode::from).collect() };
    serde_json::to_string_pretty(&stored).ok()
}

/// Writes the file as a whole. After an error the file is the same as before.
pub(super) fn write(folder: &Path, text: &str) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    files::write(&folder.join(FILE), text.as_bytes())
}
