//! Watches what responses of sources take, and whether others wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rootlight_limits::Limits;

/// The bytes that one source may take of the budget.
pub(crate) const OF_ONE: usize = 36 << 20;

/// The largest growth of this process while responses come in.
const GROWTH: u64 = 256 << 20;

/// The longest time for which a task of the runtime may wait for its turn.
const PATIENCE: Duration = Duration::from_secs(10);

/// Resident bytes of this process; zero where they are not known.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

/// Watches the budget of upstream responses, memory and the runtime's threads until it is dropped.
pub(crate) struct BudgetWatch {
    over: Arc<AtomicBool>,
    reserved: Arc<AtomicUsize>,
    grown: Arc<AtomicU64>,
    late: Arc<AtomicU64>,
}

impl BudgetWatch {
    pub(crate) fn start(limits: &Arc<Limits>) -> Self {
        let watch = Self {
            over: Arc::default(),
            reserved: Arc::default(),
            grown: Arc::default(),
            late: Arc::default(),
        };
        let (over, reserved, grown) = (watch.over.clone(), watch.reserved.clone(), watch.grown.clone());
        let (limits, before) = (limits.clone(), resident());
        std::thread::spawn(move || {
            while !over.load(Ordering::SeqCst) {
                reserved.fetch_max(limits.upstreams().taken(), Ordering::SeqCst);
                grown.fetch_max(resident().saturating_sub(before), Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        let (over, late) = (watch.over.clone(), watch.late.clone());
        tokio::spawn(async move {
            while !over.load(Ordering::SeqCst) {
                let began = Instant::now();
                tokio::time::sleep(Duration::from_millis(5)).await;
                late.fetch_max(began.elapsed().as_millis() as u64, Ordering::SeqCst);
            }
        });
        watch
    }

    /// The most bytes of the budget that were taken.
    pub(crate) fn most(&self) -> usize {
        self.reserved.load(Ordering::SeqCst)
    }

    /// Checks what was seen, while this many bytes are held for others.
    pub(crate) fn check(&self, what: &str, of_others: usize) {
        let (most, grown) = (self.reserved.load(Ordering::SeqCst), self.grown.load(Ordering::SeqCst));
        let late = Duration::from_millis(self.late.load(Ordering::SeqCst));
        println!("{what}: {most} bytes held, grown by {grown}, late by {late:?}");
        assert!(most <= OF_ONE + of_others, "{what}: {most} bytes of one source");
        assert!(grown <= GROWTH, "{what}: grown by {grown} bytes");
        assert!(late <= PATIENCE, "{what}: the runtime was blocked for {late:?}");
    }
}

impl Drop for BudgetWatch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
    }
}
