//! Counters of an allocator, by the names of PyTorch's `memory_stats` and of ONNX Runtime.

/// A quantity over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counter {
    pub(crate) current: u64,
    /// The highest since the last reset of peaks.
    pub(crate) peak: u64,
    /// The sum of all increases.
    pub(crate) allocated: u64,
    /// The sum of all decreases.
    pub(crate) freed: u64,
}

impl Counter {
    fn add(&mut self, n: u64) {
        self.current += n;
        self.peak = self.peak.max(self.current);
        self.allocated += n;
    }

    fn subtract(&mut self, n: u64) {
        self.current = self.current.saturating_sub(n);
        self.freed += n;
    }
}

/// A quantity in the pools that PyTorch tells apart. The arena has one pool: blocks and segments
/// count as small up to 1 MiB, by their own size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pools {
    pub(crate) all: Counter,
    pub(crate) large: Counter,
    pub(crate) small: Counter,
}

const SMALL: u64 = 1 << 20;

impl Pools {
    /// Changes by `n` on account of a thing of `size` bytes.
    fn add(&mut self, size: u64, n: u64) {
        self.all.add(n);
        self.of(size).add(n);
    }

    fn subtract(&mut self, size: u64, n: u64) {
        self.all.subtract(n);
        self.of(size).subtract(n);
    }

    fn of(&mut self, size: u64) -> &mut Counter {
        if size <= SMALL { &mut self.small } else { &mut self.large }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Statistics {
    /// Blocks in use.
    pub(crate) allocated: Pools,
    pub(crate) allocated_bytes: Pools,
    /// Pieces taken from the device.
    pub(crate) segment: Pools,
    pub(crate) reserved_bytes: Pools,
    /// Blocks in use, or freed while another stream still uses them.
    pub(crate) active: Pools,
    pub(crate) active_bytes: Pools,
    /// Free pieces of segments that are in use otherwise.
    pub(crate) inactive_split: Pools,
    pub(crate) inactive_split_bytes: Pools,
    /// What was asked for, before rounding.
    pub(crate) requested_bytes: Pools,
    /// The device refused, and it was tried again after giving back what was cached.
    pub(crate) num_alloc_retries: u64,
    pub(crate) num_ooms: u64,
    /// Waits for all streams.
    pub(crate) num_sync_all_streams: u64,
    pub(crate) num_device_alloc: u64,
    pub(crate) num_device_free: u64,
    /// ONNX Runtime's: the limit in bytes, `u64::MAX` for none.
    pub(crate) limit: u64,
    pub(crate) num_reserves: u64,
    /// Regions that the arena holds: grown minus shrunk, as ONNX Runtime counts.
    pub(crate) num_arena_extensions: u64,
    pub(crate) num_arena_shrinkages: u64,
    pub(crate) max_alloc_size: u64,
}

impl Statistics {
    /// Every counter by PyTorch's name, such as `allocated_bytes.all.peak`.
    pub(crate) fn entries(&self) -> Vec<(String, u64)> {
        let pools = [
            ("allocated", &self.allocated),
            ("allocated_bytes", &self.allocated_bytes),
            ("segment", &self.segment),
            ("reserved_bytes", &self.reserved_bytes),
            ("active", &self.active),
            ("active_bytes", &self.active_bytes),
            ("inactive_split", &self.inactive_split),
            ("inactive_split_bytes", &self.inactive_split_bytes),
            ("requested_bytes", &self.requested_bytes),
        ];
        let mut entries = Vec::with_capacity(pools.len() * 12 + 5);
        for (name, pools) in pools {
            for (pool, c) in [("all", pools.all), ("large_pool", pools.large), ("small_pool", pools.small)] {
                for (metric, value) in
                    [("current", c.current), ("peak", c.peak), ("allocated", c.allocated), ("freed", c.freed)]
                {
                    entries.push((format!("{name}.{pool}.{metric}"), value));
                }
            }
        }
        let plain = [
            ("num_alloc_retries", self.num_alloc_retries),
            ("num_ooms", self.num_ooms),
            ("num_sync_all_streams", self.num_sync_all_streams),
            ("num_device_alloc", self.num_device_alloc),
            ("num_device_free", self.num_device_free),
        ];
        entries.extend(plain.map(|(name, value)| (name.to_string(), value)));
        entries
    }

    /// The counters that ONNX Runtime's allocators have, by its names.
    pub(crate) fn arena_entries(&self) -> [(&'static str, u64); 9] {
        [
            ("Limit", self.limit),
            ("InUse", self.allocated_bytes.all.current),
            ("TotalAllocated", self.reserved_bytes.all.current),
            ("MaxInUse", self.allocated_bytes.all.peak),
            ("NumAllocs", self.allocated.all.allocated),
            ("NumReserves", self.num_reserves),
            ("NumArenaExtensions", self.num_arena_extensions),
            ("NumArenaShrinkages", self.num_arena_shrinkages),
            ("MaxAllocSize", self.max_alloc_size),
        ]
    }

    /// Peaks begin again at what is current.
    pub(crate) fn reset_peaks(&mut self) {
        for pools in [
            &mut self.allocated,
            &mut self.allocated_bytes,
            &mut self.segment,
            &mut self.reserved_bytes,
            &mut self.active,
            &mut self.active_bytes,
            &mut self.inactive_split,
            &mut self.inactive_split_bytes,
            &mut self.requested_bytes,
        ] {
            for counter in [&mut pools.all, &mut pools.large, &mut pools.small] {
                counter.peak = counter.current;
            }
        }
    }

    /// A block of `size` bytes begins, for a request of `requested`.
    pub(super) fn block_begins(&mut self, size: u64, requested: u64) {
        self.allocated.add(size, 1);
        self.allocated_bytes.add(size, size);
        self.active.add(size, 1);
        self.active_bytes.add(size, size);
        self.requested_bytes.add(size, requested);
        self.max_alloc_size = self.max_alloc_size.max(size);
    }

    /// Its user is done with it; streams may not be.
    pub(super) fn block_freed(&mut self, size: u64) {
        self.allocated.subtract(size, 1);
        self.allocated_bytes.subtract(size, size);
    }

    /// Nothing but its own stream uses it.
    pub(super) fn block_ends(&mut self, size: u64, requested: u64) {
        self.active.subtract(size, 1);
        self.active_bytes.subtract(size, size);
        self.requested_bytes.subtract(size, requested);
    }

    pub(super) fn split_begins(&mut self, size: u64) {
        self.inactive_split.add(size, 1);
        self.inactive_split_bytes.add(size, size);
    }

    pub(super) fn split_ends(&mut self, size: u64) {
        self.inactive_split.subtract(size, 1);
        self.inactive_split_bytes.subtract(size, size);
    }

    pub(super) fn segment_begins(&mut self, size: u64) {
        self.segment.add(size, 1);
        self.reserved_bytes.add(size, size);
        self.num_device_alloc += 1;
    }

    pub(super) fn segment_ends(&mut self, size: u64) {
        self.segment.subtract(size, 1);
        self.reserved_bytes.subtract(size, size);
        self.num_device_free += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(statistics: &Statistics, name: &str) -> u64 {
        statistics.entries().into_iter().find(|(n, _)| n == name).unwrap().1
    }

    #[test]
    fn names_and_peaks() {
        let mut s = Statistics::default();
        s.block_begins(2 << 20, (2 << 20) - 5);
        s.block_begins(1 << 20, 1000);
        s.block_freed(2 << 20);
        for (name, expected) in [
            ("allocated.all.current", 1),
            ("allocated.all.peak", 2),
            ("allocated.all.allocated", 2),
            ("allocated.all.freed", 1),
            ("allocated_bytes.large_pool.current", 0),
            ("allocated_bytes.large_pool.freed", 2 << 20),
            ("allocated_bytes.small_pool.current", 1 << 20),
            ("active.large_pool.current", 1),
            ("requested_bytes.all.current", (2 << 20) - 5 + 1000),
            ("num_ooms", 0),
        ] {
            assert_eq!(entry(&s, name), expected, "{name}");
        }
        s.reset_peaks();
        assert_eq!(entry(&s, "allocated_bytes.all.peak"), 1 << 20);
        assert_eq!(entry(&s, "allocated_bytes.all.allocated"), 3 << 20);
        assert_eq!(s.entries().len(), 9 * 3 * 4 + 5);
        assert_eq!(s.arena_entries()[4], ("NumAllocs", 2));
        assert_eq!(s.arena_entries()[8], ("MaxAllocSize", 2 << 20));
    }
}
