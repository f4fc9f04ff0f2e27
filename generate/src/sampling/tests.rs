//! Sampling by distribution: frequencies of chosen tokens beside the probabilities that the definition gives.

use super::*;

const SCORES: [f32; 8] = [2.0, 1.5, 0.2, 0.3, -1.0, 3.0, -4.0, 0.9];

fn sampling() -> Sampling {
    Sampling { sample: true, temperature: 1.0, top_k: 0, top_p: 1.0, min_p: 0.0, repetition_penalty: 1.0 }
}

/// Probabilities that transformers 5.23 gives `SCORES` (its logits processors in their order, then softmax); tokens
/// before are 5 and 0.
fn cases() -> Vec<(&'static str, Sampling, [f64; 8])> {
    vec![
        (
            "plain",
            sampling(),
            [
                0.197709269254,
                0.119916733512,
                0.032681122496,
                0.036118226476,
                0.009843364905,
                0.537429513931,
                0.000490072282,
                0.065811697145,
            ],
        ),
        (
            "temperature",
            Sampling { temperature: 0.7, ..sampling() },
            [
                0.165328470761,
                0.080935162922,
                0.012635440455,
                0.014575802114,
                0.002275545580,
                0.689871570888,
                0.000031320121,
                0.034346687159,
            ],
        ),
        (
            "hot",
            Sampling { temperature: 2.5, ..sampling() },
            [
                0.187270360475,
                0.153324005088,
                0.091154269186,
                0.094874346104,
                0.056404747629,
                0.279374558883,
                0.016988783206,
                0.120608929428,
            ],
        ),
        (
            "top-k",
            Sampling { top_k: 3, ..sampling() },
            [0.231223897622, 0.140244383166, 0.0, 0.0, 0.0, 0.628531719212, 0.0, 0.0],
        ),
        (
            "top-p",
            Sampling { top_p: 0.6, ..sampling() },
            [0.268941421370, 0.0, 0.0, 0.0, 0.0, 0.731058578630, 0.0, 0.0],
        ),
        (
            "min-p",
            Sampling { min_p: 0.1, ..sampling() },
            [0.214698999250, 0.130221525655, 0.0, 0.0, 0.0, 0.583612388250, 0.0, 0.071467086845],
        ),
        (
            "penalty",
            Sampling { repetition_penalty: 1.8, ..sampling() },
            [
                0.166624800481,
                0.245828322674,
                0.066996033756,
                0.074042068796,
                0.020178817528,
                0.290411871848,
                0.001004644168,
                0.134913440748,
            ],
        ),
        (
            "all",
            Sampling {
                temperature: 1.3,
                top_k: 6,
                top_p: 0.9,
                min_p: 0.05,
                repetition_penalty: 1.2,
                ..sampling()
            },
            [0.213581260317, 0.187881640071, 0.0, 0.074644384189, 0.0, 0.405468436909, 0.0, 0.118424278514],
        ),
    ]
}

#[test]
fn frequencies_are_the_probabilities() {
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    println!("seed {seed}");
    let mut random = Random::new(seed);
    const DRAWS: usize = 100_000;
    for (name, sampling, expected) in cases() {
        let mut counts = [0usize; 8];
        for _ in 0..DRAWS {
            counts[sampling.choose(&mut SCORES.clone(), &[5, 0], &mut random) as usize] += 1;
        }
        let mut statistic = 0.0;
        for (count, probability) in counts.iter().zip(expected) {
            if probability == 0.0 {
                assert_eq!(*count, 0, "{name}: {counts:?}");
                continue;
            }
            let wanted = probability * DRAWS as f64;
            statistic += (*count as f64 - wanted).powi(2) / wanted;
        }
        // Chi-square with 7 degrees of freedom is above 44 once in five million times; with fewer, more rarely.
        assert!(statistic < 44.0, "{name}: chi-square {statistic}, {counts:?}, seed {seed}");
    }
}

#[test]
fn the_greatest_score_without_sampling() {
    let greedy = Sampling { sample: false, ..sampling() };
    let mut random = Random::new(1);
    let penalised = Sampling { repetition_penalty: 2.0, ..greedy.clone() };
    let cold = Sampling { temperature: 0.0, ..sampling() };
    for (name, sampling, mut scores, before, expected) in [
        ("greedy", &greedy, vec![0.1, 0.9, 0.5], vec![], 1),
        ("the first of equals", &greedy, vec![0.5, 0.5, 0.1], vec![], 0),
        ("not a number", &greedy, vec![f32::NAN, -3.0, -2.0], vec![], 2),
        ("minus infinity", &greedy, vec![f32::NEG_INFINITY, f32::NEG_INFINITY, 0.0], vec![], 2),
        ("penalised", &penalised, vec![0.4, 0.7, 0.1], vec![1, 1], 0),
        ("penalised below 0", &penalised, vec![-1.0, -0.6, -9.0], vec![1], 0),
        ("temperature 0", &cold, vec![0.1, 0.9, 0.5], vec![], 1),
    ] {
        assert_eq!(sampling.choose(&mut scores, &before, &mut random), expected, "{name}");
    }
}

#[test]
fn a_seed_gives_the_same_numbers_everywhere() {
    // The reference implementation's first numbers for the state 1, 2, 3, 4.
    let mut random = Random::from_state([1, 2, 3, 4]);
    let first: Vec<u64> = (0..4).map(|_| random.next()).collect();
    assert_eq!(first, [41943041, 58720359, 3588806011781223, 3591011842654386]);
    let (mut a, mut b) = (Random::new(7), Random::new(7));
    assert!((0..100).all(|_| a.unit() == b.unit()));
}
