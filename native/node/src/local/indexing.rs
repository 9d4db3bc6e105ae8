//! Gives a local chain its index of logs, and adds the blocks of older stores to the stored index in the background.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rootlight::engine::LocalNode;
use rootlight::local::ChainSnapshot;
use rootlight_limits::priority;
use tracing::{info, warn};

use crate::index::MemoryIndex;
use crate::store::{ChainPersistence, StoredIndex};

/// Time between two log lines about progress.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Gives a node the index of its store, or one in memory. Returns the stored index; a thread of its own adds the blocks
/// that it lacks, until `stopping` is set.
pub(super) fn attach(
    node: &mut dyn LocalNode,
    persist: Option<&ChainPersistence>,
    stopping: &Arc<AtomicBool>,
) -> Option<Arc<StoredIndex>> {
    let Some(persist) = persist else {
        let index = MemoryIndex::of(node.local());
        node.set_index(Arc::new(index));
        return None;
    };
    let index = persist.index().clone();
    node.set_index(index.clone());
    if index.progress().is_some() {
        let (weak, chain, stopping) = (Arc::downgrade(&index), node.local().clone(), stopping.clone());
        let build = move || {
            priority::lower_priority();
            build(&weak, &chain, &stopping);
        };
        if let Err(failure) = std::thread::Builder::new().name("log-index".to_owned()).spawn(build) {
            warn!("index of logs: no thread to build it: {failure}");
        }
    }
    Some(index)
}

/// Makes a new index in memory if most entries may be of blocks that left the chain.
pub(super) fn renew(node: &mut dyn LocalNode) {
    let chain = node.local();
    let Some(index) = chain.index() else { return };
    if MemoryIndex::is_bloated(&**index, chain.head().number) {
        let index = MemoryIndex::of(chain);
        node.set_index(Arc::new(index));
    }
}

/// Adds all blocks of `chain` to an index. The thread sleeps for half of the time, so that messages can write to the store.
fn build(index: &Weak<StoredIndex>, chain: &ChainSnapshot, stopping: &AtomicBool) {
    let mut reported: Option<Instant> = None;
    while let Some(index) = index.upgrade().filter(|_| !stopping.load(Ordering::Relaxed)) {
        if let Some(progress) =
            index.progress().filter(|_| reported.is_none_or(|reported| reported.elapsed() >= LINE_INTERVAL))
        {
            info!("index of logs: {} of {} blocks", progress.done, progress.total);
            reported = Some(Instant::now());
        }
        let started = Instant::now();
        match index.build_some(chain) {
            Ok(true) => {}
            Ok(false) => {
                if index.progress().is_none() {
                    info!("index of logs: complete");
                }
                return;
            }
            Err(failure) => {
                return warn!("index of logs: {failure}; the next start continues");
            }
        }
        drop(index);
        std::thread::sleep(started.elapsed());
    }
}
