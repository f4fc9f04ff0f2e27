//! Free chunks by size: 21 bins, each twice as wide as the one before.

use std::collections::BTreeSet;

use super::GRANULARITY;

const BINS: usize = 21;

/// Bin `i` holds chunks of `256 << i` bytes up to twice that; the last one all larger ones too.
#[derive(Default)]
pub(super) struct Bins([BTreeSet<(u64, u64)>; BINS]);

impl Bins {
    pub(super) fn insert(&mut self, size: u64, address: u64) {
        self.0[bin(size)].insert((size, address));
    }

    pub(super) fn remove(&mut self, size: u64, address: u64) {
        let found = self.0[bin(size)].remove(&(size, address));
        debug_assert!(found, "{address:#x} is not in its bin");
    }

    /// The smallest chunk of at least `size` that `usable` takes; of equal ones the one with the
    /// lowest address.
    pub(super) fn best_fit(&self, size: u64, usable: impl Fn(u64) -> bool) -> Option<u64> {
        let first = bin(size);
        self.0[first..]
            .iter()
            .flat_map(|bin| bin.range((size, 0)..))
            .map(|&(_, address)| address)
            .find(|&address| usable(address))
    }

    /// The size of the largest free chunk, 0 when there is none.
    pub(super) fn largest(&self) -> u64 {
        self.0.iter().rev().find_map(|bin| bin.last()).map_or(0, |&(size, _)| size)
    }
}

fn bin(size: u64) -> usize {
    let units = (size / GRANULARITY).max(1);
    (units.ilog2() as usize).min(BINS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_double_from_256_bytes_to_256_mib() {
        for (size, expected) in [
            (0, 0),
            (256, 0),
            (511, 0),
            (512, 1),
            (1023, 1),
            (1024, 2),
            (1 << 20, 12),
            ((2 << 20) - 1, 12),
            (2 << 20, 13),
            ((256 << 20) - 1, 19),
            (256 << 20, 20),
            (512 << 20, 20),
            (u64::MAX, 20),
        ] {
            assert_eq!(bin(size), expected, "{size}");
        }
    }

    #[test]
    fn the_smallest_that_fits_and_then_the_lowest_address() {
        let mut bins = Bins::default();
        for (size, address) in [(4096, 1), (1024, 2), (1536, 5), (1536, 3), (1 << 30, 4)] {
            bins.insert(size, address);
        }
        let fit = |size| bins.best_fit(size, |_| true);
        assert_eq!(fit(256), Some(2));
        assert_eq!(fit(1280), Some(3));
        assert_eq!(fit(2048), Some(1));
        assert_eq!(fit(8192), Some(4));
        assert_eq!(fit((1 << 30) + 256), None);
        assert_eq!(bins.best_fit(1280, |address| address > 3), Some(5));
        assert_eq!(bins.largest(), 1 << 30);
        bins.remove(1 << 30, 4);
        assert_eq!(bins.largest(), 4096);
    }
}
