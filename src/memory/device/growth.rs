//! How large the arena's next region is.

use super::config::{ArenaConfig, ExtendStrategy};
use super::{GRANULARITY, rounded};

/// The growth of one arena. A size is planned, tried on the device, and taken note of when it was
/// granted.
pub(super) struct Growth {
    strategy: ExtendStrategy,
    /// The size of the next region, unless more is needed.
    next: u64,
    /// The size that growth begins with after the first region, and again after shrinking.
    initial: u64,
    /// Doubling ends here; a larger request gets a region of its own size.
    cap: u64,
    first: bool,
}

/// A region to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) size: u64,
    next: u64,
}

impl Growth {
    pub(super) fn new(config: &ArenaConfig) -> Self {
        let round = |bytes: u64| rounded(bytes.max(1)).unwrap_or(u64::MAX - (GRANULARITY - 1));
        Growth {
            strategy: config.arena_extend_strategy,
            next: round(config.initial_chunk_size_bytes),
            initial: round(config.initial_growth_chunk_size_bytes),
            cap: round(config.max_power_of_two_extend_bytes),
            first: true,
        }
    }

    /// The region for a request of `bytes`, where at most `available` may be allocated. Both are
    /// multiples of the granularity, and the request fits.
    pub(super) fn plan(&self, bytes: u64, available: u64) -> Plan {
        let ExtendStrategy::NextPowerOfTwo = self.strategy else {
            return Plan { size: bytes, next: self.next };
        };
        if bytes > self.cap {
            return Plan { size: bytes, next: self.cap };
        }
        let mut size = self.next;
        while size < bytes {
            size = size.saturating_mul(2);
        }
        let size = size.min(self.cap);
        let next = match (self.first, size > self.next) {
            (true, false) => self.initial,
            (true, true) => size.max(self.initial),
            (false, false) => size.saturating_mul(2),
            (false, true) => size,
        };
        Plan { size: size.min(available), next: next.min(self.cap) }
    }

    /// The plan's region is there.
    pub(super) fn grown(&mut self, plan: Plan) {
        self.next = plan.next;
        self.first = false;
    }

    /// Regions were given back: growth begins again.
    pub(super) fn restart(&mut self) {
        if !self.first {
            self.next = self.initial.min(self.cap);
        }
    }
}

/// A smaller size to try when the device refused `size`: a tenth less, down to the request itself.
pub(super) fn back_off(size: u64, request: u64) -> Option<u64> {
    let less = size - size / 10;
    let less = (less - less % GRANULARITY).min(size.saturating_sub(GRANULARITY));
    (size > request).then(|| less.max(request))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    fn sizes(config: &ArenaConfig, requests: &[u64], available: u64) -> Vec<u64> {
        let mut growth = Growth::new(config);
        requests
            .iter()
            .map(|&request| {
                let plan = growth.plan(request, available);
                growth.grown(plan);
                plan.size
            })
            .collect()
    }

    #[test]
    fn next_power_of_two() {
        let default = ArenaConfig::default();
        for (requests, expected) in [
            // Each region doubles the size of the next.
            (&[256, 256, 256, 256][..], &[MIB, 2 * MIB, 4 * MIB, 8 * MIB][..]),
            // A request beyond it doubles until it fits, and that size is then used once more.
            (&[3 * MIB, 256, 256], &[4 * MIB, 4 * MIB, 8 * MIB]),
            (&[256, 9 * MIB, 256, 256], &[MIB, 16 * MIB, 16 * MIB, 32 * MIB]),
            // Doubling ends at 1 GiB; a larger request is taken as it is.
            (&[600 * MIB, 256, 256], &[GIB, GIB, GIB]),
            (&[3 * GIB + 256, 256], &[3 * GIB + 256, GIB]),
        ] {
            assert_eq!(sizes(&default, requests, u64::MAX), expected, "{requests:?}");
        }
        let small = ArenaConfig {
            initial_chunk_size_bytes: 1000,
            initial_growth_chunk_size_bytes: 8 * MIB,
            max_power_of_two_extend_bytes: 12 * MIB,
            ..default.clone()
        };
        assert_eq!(sizes(&small, &[256; 4], u64::MAX), [1024, 8 * MIB, 12 * MIB, 12 * MIB]);
        assert_eq!(sizes(&default, &[256, 9 * MIB], 10 * MIB), [MIB, 10 * MIB]);
    }

    #[test]
    fn same_as_requested() {
        let config =
            ArenaConfig { arena_extend_strategy: ExtendStrategy::SameAsRequested, ..ArenaConfig::default() };
        assert_eq!(sizes(&config, &[256, 3 * GIB, 512], u64::MAX), [256, 3 * GIB, 512]);
    }

    #[test]
    fn shrinking_restarts_growth() {
        let mut growth = Growth::new(&ArenaConfig::default());
        for _ in 0..5 {
            let plan = growth.plan(256, u64::MAX);
            growth.grown(plan);
        }
        growth.restart();
        assert_eq!(growth.plan(256, u64::MAX).size, 2 * MIB);
    }

    #[test]
    fn backing_off_by_tenths() {
        let tries = |mut size, request| {
            let mut sizes = Vec::new();
            while let Some(less) = back_off(size, request) {
                sizes.push(less);
                size = less;
            }
            sizes
        };
        assert_eq!(tries(2 * MIB, 2 * MIB), [0u64; 0]);
        assert_eq!(tries(10240, 8192), [9216, 8192]);
        assert_eq!(tries(1024, 256), [768, 512, 256]);
        assert_eq!(tries(2 * MIB, 2 * MIB - 256), [2 * MIB - 256]);
    }
}
