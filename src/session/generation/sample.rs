//! Drawing a token: among the likeliest, by their probabilities.

pub(super) struct Sampler {
    state: u64,
    top_p: f32,
    /// So many are never left out.
    keep: usize,
}

impl Sampler {
    pub(super) fn new(seed: i32, top_p: f32, keep: usize) -> Self {
        Sampler { state: seed as u32 as u64, top_p, keep }
    }

    pub(super) fn draw(&mut self, scores: &[f32]) -> usize {
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        let max = order.first().map_or(0.0, |&i| scores[i]);
        let weights: Vec<f64> = order.iter().map(|&i| (scores[i] - max).exp() as f64).collect();
        let total: f64 = weights.iter().sum();
        // Tokens stay until those before them make up the share.
        let mut share = 0.0;
        let mut kept = 0;
        while kept < weights.len() && (kept < self.keep.max(1) || share <= self.top_p as f64 * total) {
            share += weights[kept];
            kept += 1;
        }
        let mut left = self.uniform() * share;
        for (i, weight) in weights[..kept].iter().enumerate() {
            left -= weight;
            if left < 0.0 {
                return order[i];
            }
        }
        order.first().copied().unwrap_or(0)
    }

    /// A number in [0, 1), by SplitMix64 (Steele, Lea and Flood, 2014).
    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
