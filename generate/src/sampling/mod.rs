//! Which token comes next, by the model's scores. Filters and their order are those of transformers: penalty of
//! repetitions, temperature, top-k, top-p, min-p.

mod random;
#[cfg(test)]
mod tests;

pub(crate) use random::Random;

use crate::options::SearchOptions;

/// How to choose; every number is known.
#[derive(Clone, Debug)]
pub(crate) struct Sampling {
    pub(crate) sample: bool,
    pub(crate) temperature: f64,
    /// 0 for no limit.
    pub(crate) top_k: usize,
    pub(crate) top_p: f64,
    pub(crate) min_p: f64,
    pub(crate) repetition_penalty: f64,
}

impl Sampling {
    pub(crate) fn new(options: &SearchOptions) -> Sampling {
        Sampling {
            sample: options.sample.unwrap_or(false),
            temperature: options.temperature.unwrap_or(1.0),
            top_k: options.top_k.unwrap_or(0),
            top_p: options.top_p.unwrap_or(1.0),
            min_p: options.min_p.unwrap_or(0.0),
            repetition_penalty: options.repetition_penalty.unwrap_or(1.0),
        }
    }

    /// The next token after `before`, whose scores are changed in place.
    pub(crate) fn choose(&self, scores: &mut [f32], before: &[u32], random: &mut Random) -> u32 {
        if self.repetition_penalty != 1.0 {
            penalise(scores, before, self.repetition_penalty as f32);
        }
        if !self.sample || self.temperature == 0.0 || self.top_k == 1 {
            return greedy(scores);
        }
        let candidates = self.candidates(scores);
        let mut left = random.unit() * candidates.iter().map(|(_, weight)| weight).sum::<f64>();
        for &(token, weight) in &candidates {
            left -= weight;
            if left < 0.0 {
                return token;
            }
        }
        // Rounding may leave a rest beyond the last; the first is the most probable.
        candidates.first().map_or_else(|| greedy(scores), |(token, _)| *token)
    }

    /// The tokens that may be chosen, by falling probability, with weights in proportion to it.
    fn candidates(&self, scores: &[f32]) -> Vec<(u32, f64)> {
        let mut order: Vec<u32> =
            (0..scores.len() as u32).filter(|i| !scores[*i as usize].is_nan()).collect();
        let falling =
            |a: &u32, b: &u32| scores[*b as usize].total_cmp(&scores[*a as usize]).then_with(|| a.cmp(b));
        if self.top_k > 0 && self.top_k < order.len() {
            order.select_nth_unstable_by(self.top_k - 1, falling);
            order.truncate(self.top_k);
        }
        order.sort_unstable_by(falling);
        let Some(best) = order.first().map(|token| f64::from(scores[*token as usize])) else {
            return Vec::new();
        };
        let weight = |token: u32| {
            let distance = f64::from(scores[token as usize]) - best;
            // Also where both are infinite.
            if distance == 0.0 || distance.is_nan() { 1.0 } else { (distance / self.temperature).exp() }
        };
        let mut candidates: Vec<(u32, f64)> = order.into_iter().map(|token| (token, weight(token))).collect();
        if self.top_p < 1.0 {
            let total: f64 = candidates.iter().map(|(_, weight)| weight).sum();
            // Those before which less than top_p has come; the first always stays.
            let mut sum = 0.0;
            let kept = candidates.iter().take_while(|(_, weight)| {
                let stays = sum < self.top_p * total;
                sum += weight;
                stays
            });
            let kept = kept.count().max(1);
            candidates.truncate(kept);
        }
        if self.min_p > 0.0 {
            // The best weighs 1.
            let kept = candidates.partition_point(|(_, weight)| *weight >= self.min_p).max(1);
            candidates.truncate(kept);
        }
        candidates
    }
}

/// The token with the best score, the first of equals.
fn greedy(scores: &[f32]) -> u32 {
    let mut best = 0;
    for (token, score) in scores.iter().enumerate() {
        if *score > scores[best] || scores[best].is_nan() {
            best = token;
        }
    }
    best as u32
}

/// Makes tokens that are there already less likely, as in CTRL (Keskar and others, 2019).
fn penalise(scores: &mut [f32], before: &[u32], penalty: f32) {
    let mut seen: Vec<u32> = before.to_vec();
    seen.sort_unstable();
    seen.dedup();
    for token in seen {
        if let Some(score) = scores.get_mut(token as usize) {
            *score = if *score < 0.0 { *score * penalty } else { *score / penalty };
        }
    }
}
