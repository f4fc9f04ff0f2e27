//! Waiting for another thread without sleeping.

use std::time::{Duration, Instant};

/// How long a thread that waits keeps its processor; then others that have work may use it.
const SELFISH: Duration = Duration::from_micros(10);
/// How often a thread looks at the shortest intervals, to begin with.
const EAGER: usize = 64;

/// Waits until `done`, but not for longer than `patience`; whether it is.
pub(super) fn wait_for(patience: Duration, mut done: impl FnMut() -> bool) -> bool {
    // Mostly it is soon: half of what looking less often takes would be lost each time.
    for _ in 0..EAGER {
        if done() {
            return true;
        }
        std::hint::spin_loop();
    }
    let mut start = None;
    while !done() {
        for _ in 0..8 {
            std::hint::spin_loop();
        }
        let waited = start.get_or_insert_with(Instant::now).elapsed();
        if waited > patience {
            return false;
        }
        if waited > SELFISH {
            std::thread::yield_now();
        }
    }
    true
}
