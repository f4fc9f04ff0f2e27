//! The order of a weight's channels. Of two that lie side by side in a dot group, weights of one sign that are 128 together have
//! to be cut, and what is cut off is multiplied by itself: so channels lie beside those with which fewer rows have such weights.

use std::collections::VecDeque;

/// Numbers of a channel that are looked at, at most.
const NUMBERS: usize = 1024;
/// Channels that one is compared with, at most.
const CANDIDATES: usize = 32;
/// Numbers of a vector.
const LEN: usize = 32;
/// Channels whose sizes are found together, so that the lines that rows write to stay in the first cache.
const BLOCK: usize = 128;
/// One pair of numbers in so many may have to be cut in any order.
const FEW: usize = 512;

/// An order of the channels of a weight `[rows, channels, taps]` of signed bytes with `flip`. Channels 0 and 1 of it are a pair,
/// and so on; pairs that have to be cut most often come first, so that they share dot groups.
pub(super) fn order(weight: &[u8], flip: u8, [rows, channels, taps]: [usize; 3]) -> Vec<u32> {
    let parts = Parts::new(weight, flip, [rows, channels, taps]);
    let neighbours = (0..channels / 2).map(|i| parts.conflicts(2 * i, 2 * i + 1));
    let total: usize = neighbours.sum();
    if total * FEW <= channels / 2 * parts.numbers {
        return (0..channels as u32).collect();
    }
    let mut left: Vec<usize> = (0..channels).collect();
    left.sort_by_key(|&channel| parts.large[channel]);
    // One is taken from near the begin each time.
    let mut left = VecDeque::from(left);
    let mut pairs = Vec::with_capacity(channels / 2);
    // Those with the most large numbers choose first.
    while left.len() > 1 {
        let Some(first) = left.pop_back() else { break };
        let (mut best, mut at) = (usize::MAX, 0);
        for (i, &other) in left.iter().enumerate().take(CANDIDATES) {
            let conflicts = parts.conflicts(first, other);
            if conflicts < best {
                (best, at) = (conflicts, i);
            }
            if best == 0 {
                break;
            }
        }
        let Some(second) = left.remove(at) else { break };
        pairs.push((best, [first, second]));
    }
    pairs.sort_by_key(|&(conflicts, _)| std::cmp::Reverse(conflicts));
    let all = pairs.into_iter().flat_map(|(_, pair)| pair).chain(left);
    all.map(|channel| channel as u32).collect()
}

/// Whether an order has each channel once; one that was kept and damaged may not.
pub(super) fn is_order(order: &[u32], channels: usize) -> bool {
    let mut found = vec![false; channels];
    let is_new =
        |&channel: &u32| found.get_mut(channel as usize).is_some_and(|found| !std::mem::replace(found, true));
    order.len() == channels && order.iter().all(is_new)
}

/// The sizes of the numbers of each channel: of positive ones, then of negative ones.
struct Parts {
    sizes: Vec<u8>,
    /// Numbers of a channel that are looked at, with zeros to whole vectors.
    numbers: usize,
    /// The same with zeros to an odd number of vectors: how far negative ones lie behind positive ones.
    len: usize,
    /// How many numbers of a channel may be too large beside another.
    large: Vec<u32>,
}

impl Parts {
    fn new(weight: &[u8], flip: u8, [rows, channels, taps]: [usize; 3]) -> Self {
        // Of so many rows one.
        let step = (rows * taps).div_ceil(NUMBERS).max(1);
        let numbers = (rows.div_ceil(step) * taps).next_multiple_of(LEN);
        // An odd number of vectors: channels that are a power of two apart would share places in the caches.
        let len = (numbers / LEN / 2 * 2 + 1) * LEN;
        let mut sizes = vec![0u8; 2 * len * channels];
        // Of few channels at a time: the lines that rows write to stay in the first cache.
        for (block, sizes) in sizes.chunks_mut(2 * len * BLOCK).enumerate() {
            for (i, row) in weight.chunks_exact(channels * taps).step_by(step).enumerate() {
                let row = &row[block * BLOCK * taps..];
                if taps == 1 {
                    for (sizes, &byte) in sizes.chunks_exact_mut(2 * len).zip(row) {
                        let number = (byte ^ flip) as i8;
                        // Nobody foretells signs: no branch.
                        (sizes[i], sizes[len + i]) = (number.max(0) as u8, number.min(0).unsigned_abs());
                    }
                    continue;
                }
                for (sizes, numbers) in sizes.chunks_exact_mut(2 * len).zip(row.chunks_exact(taps)) {
                    let (above, below) = sizes[i * taps..].split_at_mut(len);
                    for ((above, below), &byte) in above.iter_mut().zip(below).zip(numbers) {
                        let number = (byte ^ flip) as i8;
                        (*above, *below) = (number.max(0) as u8, number.min(0).unsigned_abs());
                    }
                }
            }
        }
        let are_large = |sizes: &[u8]| sizes.iter().map(|&size| u32::from(size > 64)).sum();
        let large = sizes.chunks_exact(2 * len).map(are_large).collect();
        Parts { sizes, numbers, len, large }
    }

    fn of(&self, channel: usize) -> &[u8] {
        &self.sizes[channel * 2 * self.len..][..2 * self.len]
    }

    /// How often two channels have to be cut side by side.
    fn conflicts(&self, a: usize, b: usize) -> usize {
        let (a, b) = (self.of(a), self.of(b));
        #[cfg(target_arch = "x86_64")]
        if crate::isa::has_avx2() && is_x86_feature_detected!("popcnt") {
            // SAFETY: the processor has both instruction sets; both slices are whole vectors of as many numbers.
            return unsafe { x86::conflicts(a, b) };
        }
        a.iter().zip(b).filter(|&(&a, &b)| a.saturating_add(b) > 128).count()
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::LEN;

    /// # Safety
    /// The processor has AVX2 and POPCNT; both have as many whole vectors.
    #[target_feature(enable = "avx2,popcnt")]
    pub(super) unsafe fn conflicts(a: &[u8], b: &[u8]) -> usize {
        let (limit, mut fitting) = (_mm256_set1_epi8(128u8 as i8), 0);
        for at in (0..a.len()).step_by(LEN) {
            // SAFETY: as the caller promises.
            let sizes = unsafe {
                let (a, b) = (a.as_ptr().add(at).cast(), b.as_ptr().add(at).cast());
                _mm256_adds_epu8(_mm256_loadu_si256(a), _mm256_loadu_si256(b))
            };
            let fits = _mm256_cmpeq_epi8(_mm256_max_epu8(sizes, limit), limit);
            fitting += _mm256_movemask_epi8(fits).count_ones() as usize;
        }
        a.len() - fitting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every channel once, and few pairs to cut where there is such an order.
    #[test]
    fn channels_with_large_weights_are_parted() {
        let taps = 3;
        for (rows, channels, flip) in [(70, 40, 0), (300, 37, 128), (5, 301, 0)] {
            // Half of the channels have large numbers only in even rows, the others only in odd ones.
            let number = |row: usize, channel: usize| match (row + channel / 20) % 2 {
                0 => 100u8,
                _ => (channel % 20) as u8,
            };
            let weight: Vec<u8> = (0..rows * channels * taps)
                .map(|i| number(i / (channels * taps), i / taps % channels) ^ flip)
                .collect();
            let got = order(&weight, flip, [rows, channels, taps]);
            let mut sorted = got.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..channels as u32), "{rows} × {channels}");
            let parts = Parts::new(&weight, flip, [rows, channels, taps]);
            // Vectors count what single numbers do.
            for (a, b) in (0..channels).map(|i| (i, i * 7 % channels)) {
                let pairs = parts.of(a).iter().zip(parts.of(b));
                let want = pairs.filter(|&(&a, &b)| u32::from(a) + u32::from(b) > 128).count();
                assert_eq!(parts.conflicts(a, b), want, "{rows} × {channels}: {a} and {b}");
            }
            let cost = |order: &[u32]| -> usize {
                order.as_chunks::<2>().0.iter().map(|&[a, b]| parts.conflicts(a as usize, b as usize)).sum()
            };
            let before: Vec<u32> = (0..channels as u32).collect();
            assert!(
                cost(&got) * 3 < cost(&before),
                "{rows} × {channels}: {} of {}",
                cost(&got),
                cost(&before)
            );
        }
        // Nothing to cut: as they were.
        assert!(order(&[5; 24], 0, [3, 8, 1]).into_iter().eq(0..8));
        // One pair in 448 numbers is not few; zeros behind the numbers, which would make 672 of them, do not count.
        let mut weight = [5; 64 * 14];
        weight[..2].fill(100);
        assert!(!order(&weight, 0, [64, 14, 1]).into_iter().eq(0..14));
    }
}
