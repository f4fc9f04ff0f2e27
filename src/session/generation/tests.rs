//! Searches over scores that are known, and a decoder that counts.

use super::beams::{Beams, Candidate};
use super::sample::Sampler;
use super::{largest, log_softmax};

#[test]
fn beams_find_the_likelier_sequence_behind_a_less_likely_token() {
    // After token 1 everything is unlikely, after token 2 one token is certain. 0 ends a sequence.
    let logs = |p: [f32; 3]| p.map(f32::ln).to_vec();
    let mut beams = Beams::new(1, 2, 1.0, false, 0, 9);
    let mut sequences = vec![vec![1], vec![1]];
    let mut next = vec![logs([0.0, 0.6, 0.4]), logs([0.0, 0.6, 0.4])];
    beams.add_scores(&mut next);
    assert!(!beams.advance(&next, &sequences));
    assert_eq!((&beams.tokens[..], &beams.origins[..]), (&[1, 2][..], &[0, 0][..]));
    sequences = vec![vec![1, 1], vec![1, 2]];
    let mut next = vec![logs([0.4, 0.3, 0.3]), logs([0.9, 0.05, 0.05])];
    beams.add_scores(&mut next);
    beams.advance(&next, &sequences);
    let best = beams.finish(&[vec![1, 1, 1], vec![1, 1, 2]], 1);
    assert_eq!(best, [Candidate { tokens: vec![1, 2], score: (0.4f32.ln() + 0.9f32.ln()) / 2.0 }]);
}

#[test]
fn a_sampler_keeps_to_the_likeliest_and_draws_by_probability() {
    let mut row = [0.5f32, 0.3, 0.15, 0.05].map(f32::ln);
    log_softmax(&mut row);
    assert_eq!(largest(&row), 0);
    let mut sampler = Sampler::new(7, 0.6, 1);
    let mut counts = [0usize; 4];
    (0..8000).for_each(|_| counts[sampler.draw(&row)] += 1);
    assert_eq!(counts[2..], [0, 0], "{counts:?}");
    // 0.5 of 0.8, within five standard deviations.
    assert!((counts[0] as f64 - 5000.0).abs() < 5.0 * (8000.0f64 * 0.625 * 0.375).sqrt(), "{counts:?}");
}
