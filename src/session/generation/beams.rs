//! Beam search: several sequences of each sample grow at once, and those that end are kept by their scores.

/// A finished sequence.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) tokens: Vec<i32>,
    /// The sum of logarithms of probabilities, over a power of the length.
    pub(super) score: f32,
}

pub(super) struct Beams {
    /// Sequences of a sample.
    count: usize,
    length_penalty: f32,
    early_stopping: bool,
    eos: i32,
    pad: i32,
    /// The sum of logarithms of each sequence that grows.
    scores: Vec<f32>,
    /// The token that each sequence gets next, and which sequence it continues.
    pub(super) tokens: Vec<i32>,
    pub(super) origins: Vec<usize>,
    samples: Vec<Sample>,
}

/// The finished sequences of a sample, the best first.
#[derive(Default)]
struct Sample {
    found: Vec<Candidate>,
    done: bool,
}

impl Beams {
    pub(super) fn new(
        batch: usize,
        count: usize,
        length_penalty: f32,
        early_stopping: bool,
        eos: i32,
        pad: i32,
    ) -> Self {
        // All sequences of a sample begin alike: only the first counts, or all would get the same tokens.
        let scores = (0..batch * count).map(|i| if i % count == 0 { 0.0 } else { -1e9 }).collect();
        let samples = (0..batch).map(|_| Sample::default()).collect();
        let (tokens, origins) = (vec![pad; batch * count], (0..batch * count).collect());
        Beams { count, length_penalty, early_stopping, eos, pad, scores, tokens, origins, samples }
    }

    /// Adds each sequence's score to those of its next tokens.
    pub(super) fn add_scores(&self, next: &mut [Vec<f32>]) {
        for (row, score) in next.iter_mut().zip(&self.scores) {
            row.iter_mut().for_each(|x| *x += score);
        }
    }

    /// Chooses the next tokens by their scores; tells whether all samples are done.
    pub(super) fn advance(&mut self, next: &[Vec<f32>], sequences: &[Vec<i32>]) -> bool {
        let count = self.count;
        for b in 0..self.samples.len() {
            let rows = b * count..(b + 1) * count;
            if self.samples[b].done {
                self.scores[rows.clone()].fill(0.0);
                self.tokens[rows.clone()].fill(self.pad);
                self.origins[rows.clone()].fill(rows.start);
                continue;
            }
            let best = highest(&next[rows.clone()], 2 * count);
            let mut filled = 0;
            for (rank, &(score, beam, token)) in best.iter().enumerate() {
                let (origin, token) = (rows.start + beam, token as i32);
                if self.eos >= 0 && token == self.eos {
                    if rank < count {
                        self.keep(b, &sequences[origin], score);
                    }
                } else {
                    let at = rows.start + filled;
                    (self.scores[at], self.tokens[at], self.origins[at]) = (score, token, origin);
                    filled += 1;
                }
                if filled == count {
                    break;
                }
            }
            let sample = &self.samples[b];
            if sample.found.len() < count {
                continue;
            }
            let length = sequences[rows.start].len();
            let reachable = best.first().map_or(f32::NEG_INFINITY, |best| self.score(best.0, length));
            let improves = sample.found.last().is_none_or(|worst| worst.score < reachable);
            self.samples[b].done = self.early_stopping || !improves;
        }
        self.samples.iter().all(|sample| sample.done)
    }

    /// The best sequences of each sample, those that still grow among them.
    pub(super) fn finish(mut self, sequences: &[Vec<i32>], returned: usize) -> Vec<Candidate> {
        for (row, tokens) in sequences.iter().enumerate() {
            let sample = row / self.count;
            if !self.samples[sample].done {
                self.keep(sample, tokens, self.scores[row]);
            }
        }
        self.samples.into_iter().flat_map(|sample| sample.found.into_iter().take(returned)).collect()
    }

    fn score(&self, sum: f32, length: usize) -> f32 {
        sum / (length as f32).powf(self.length_penalty)
    }

    /// Keeps a sequence when it is among the best.
    fn keep(&mut self, sample: usize, tokens: &[i32], sum: f32) {
        let score = self.score(sum, tokens.len());
        let found = &mut self.samples[sample].found;
        let at = found.iter().position(|other| score > other.score).unwrap_or(found.len());
        found.insert(at, Candidate { tokens: tokens.to_vec(), score });
        found.truncate(self.count);
    }
}

/// The `k` highest scores with row and column, the highest first; of equal ones the first.
fn highest(rows: &[Vec<f32>], k: usize) -> Vec<(f32, usize, usize)> {
    let mut best: Vec<(f32, usize, usize)> = Vec::with_capacity(k + 1);
    for (r, row) in rows.iter().enumerate() {
        for (c, &x) in row.iter().enumerate() {
            if best.len() == k && best.last().is_some_and(|worst| x <= worst.0 || x.is_nan()) {
                continue;
            }
            let at = best.iter().position(|other| x > other.0).unwrap_or(best.len());
            best.insert(at, (x, r, c));
            best.truncate(k);
        }
    }
    best
}
