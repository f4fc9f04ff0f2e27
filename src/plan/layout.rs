//! Places values with lifetimes in one block of memory.

use crate::tensor::ALIGNMENT;

/// A span of memory needed from step `first` to step `last`, both included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) bytes: usize,
}

/// An offset for each interval, and the size of the block. Larger intervals are placed first, each
/// at the lowest offset where nothing that lives at the same time is in the way (greedy by size, as
/// in Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020).
/// Offsets are multiples of 64.
pub(super) fn place(intervals: &[Interval]) -> (Vec<usize>, usize) {
    let mut order: Vec<usize> = (0..intervals.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(intervals[i].bytes), intervals[i].first));
    let mut offsets = vec![0; intervals.len()];
    // The placed intervals, by offset.
    let mut placed: Vec<usize> = Vec::with_capacity(intervals.len());
    let mut total = 0;
    for i in order {
        let interval = intervals[i];
        let bytes = interval.bytes.next_multiple_of(ALIGNMENT);
        let mut offset = 0;
        for &other in &placed {
            let o = intervals[other];
            if o.first > interval.last || o.last < interval.first {
                continue;
            }
            if offsets[other] >= offset + bytes {
                break;
            }
            offset = offset.max(offsets[other] + o.bytes.next_multiple_of(ALIGNMENT));
        }
        offsets[i] = offset;
        total = total.max(offset + bytes);
        let at = placed.partition_point(|&other| offsets[other] < offset);
        placed.insert(at, i);
    }
    (offsets, total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_live_together_do_not_overlap() {
        // A reproducible mix of sizes and lifetimes.
        let mut state = 7u64;
        let mut next = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((state >> 33) % n) as usize
        };
        let intervals: Vec<Interval> = (0..300)
            .map(|_| {
                let first = next(100);
                Interval { first, last: first + next(12), bytes: next(5000) }
            })
            .collect();
        let (offsets, total) = place(&intervals);
        for (i, a) in intervals.iter().enumerate() {
            assert!(offsets[i].is_multiple_of(ALIGNMENT) && offsets[i] + a.bytes <= total);
            for (j, b) in intervals.iter().enumerate().skip(i + 1) {
                let together = a.first <= b.last && b.first <= a.last;
                let apart = offsets[i] + a.bytes <= offsets[j] || offsets[j] + b.bytes <= offsets[i];
                assert!(!together || apart || a.bytes == 0 || b.bytes == 0, "{a:?} and {b:?}");
            }
        }
        let peak = (0..120).map(|t| {
            intervals.iter().filter(|i| i.first <= t && t <= i.last).map(|i| i.bytes).sum::<usize>()
        });
        assert!(
            total <= peak.max().unwrap_or(0) * 3 / 2,
            "the block stays near the peak of what lives together"
        );
    }

    #[test]
    fn a_chain_needs_two_places() {
        let chain: Vec<Interval> = (0..10).map(|i| Interval { first: i, last: i + 1, bytes: 1024 }).collect();
        assert_eq!(place(&chain).1, 2048);
        assert_eq!(place(&[]).1, 0);
    }
}
