//! The trained example: tokens are those of transformers, texts come in whole characters, sequences are rewound.

mod support;

use serde_json::Value;
use support::{Generator, example};

/// Prompts with their tokens, and the 200 tokens and the text that transformers gives after each.
fn reference() -> Vec<(Value, Vec<i32>, Vec<i32>, String)> {
    let path = example().join("../reference.json");
    let cases: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let numbers = |value: &Value| -> Vec<i32> {
        value.as_array().unwrap().iter().map(|n| n.as_i64().unwrap() as i32).collect()
    };
    let text = |case: &Value| case["text"].as_str().unwrap().to_owned();
    cases
        .iter()
        .map(|case| {
            (case["prompt"].clone(), numbers(&case["tokens"]), numbers(&case["following"]), text(case))
        })
        .collect()
}

#[test]
fn greedy_tokens_are_those_of_transformers() {
    let cases = reference();
    assert!(cases.len() >= 5);
    let generator = Generator::open(&example(), &[("ignore_stop", "1")]).unwrap();
    for (prompt, tokens, following, text) in &cases {
        assert_eq!(following.len(), 200);
        generator.rewind(0).unwrap();
        match prompt.as_str() {
            Some(prompt) => generator.append_text(prompt).unwrap(),
            None => generator.chat(&prompt.to_string()).unwrap(),
        }
        assert_eq!(generator.tokens(0), *tokens, "{prompt}");
        let mut found = Vec::new();
        let mut pieces = String::new();
        for _ in 0..200 {
            found.extend(generator.next(1).unwrap().0);
            pieces += &generator.text(0).unwrap();
        }
        assert_eq!(found, *following, "{prompt}");
        assert_eq!(generator.decode(&found), *text, "{prompt}");
        assert!(text.starts_with(&pieces) && text.len() - pieces.len() < 4, "{prompt}: {pieces}");
    }
}

#[test]
fn prompts_in_chunks_and_caches_that_are_not_shared() {
    let (_, tokens, following, _) = reference().swap_remove(3);
    for settings in [
        &[("chunk", "7")][..],
        &[("chunk", "1")],
        &[("share_buffer", "0")],
        &[("share_buffer", "0"), ("chunk", "7")],
        &[("sequences", "3")],
        &[("session.optimization", "none")],
        &[("max_length", "120")],
    ] {
        let generator = Generator::open(&example(), &[settings, &[("ignore_stop", "1")]].concat()).unwrap();
        let sequences = if settings[0].0 == "sequences" { 3 } else { 1 };
        generator.append(&tokens).unwrap();
        for expected in &following[..16] {
            let (found, _) = generator.next(sequences).unwrap();
            assert_eq!(found, vec![*expected; sequences], "{settings:?}");
        }
    }
}

#[test]
fn answers_come_in_whole_characters() {
    let generator = Generator::open(&example(), &[]).unwrap();
    let ask = |question: &str| format!(r#"[{{"role": "user", "content": "{question}"}}]"#);
    for (question, answer) in [
        ("What is 27 plus 58?", "27 plus 58 is 85."),
        ("Draw three stars.", "★★★"),
        ("Sort 31, 4, 15.", "4, 15, 31."),
        ("What day comes 3 days after Friday?", "Monday."),
    ] {
        generator.chat(&ask(question)).unwrap();
        assert_eq!(generator.rest(), answer, "{question}");
        assert_eq!(generator.stop(0), 1);
    }
    // A star is three tokens; each piece is whole.
    generator.chat(&ask("Draw five stars.")).unwrap();
    let mut pieces = Vec::new();
    while !generator.next(0).unwrap().1 {
        pieces.push(generator.text(0).unwrap());
    }
    pieces.retain(|piece| !piece.is_empty());
    assert_eq!(pieces, ["★"; 5]);
}

#[test]
fn a_rewound_sequence_goes_on_as_if_it_had_not_been_longer() {
    let (_, tokens, following, _) = reference().swap_remove(0);
    for share in ["0", "1"] {
        let generator =
            Generator::open(&example(), &[("share_buffer", share), ("ignore_stop", "1")]).unwrap();
        generator.append(&tokens).unwrap();
        assert_eq!(generator.take(60), following[..60]);
        for length in [tokens.len() + 20, tokens.len() + 20, tokens.len(), tokens.len() - 5] {
            generator.rewind(length).unwrap();
            assert_eq!(generator.tokens(0).len(), length);
            if length < tokens.len() {
                generator.append(&tokens[length..]).unwrap();
            }
            let at = length.saturating_sub(tokens.len());
            assert_eq!(generator.take(10), following[at..at + 10], "share_buffer {share}, {length}");
        }
    }
}

#[test]
fn a_conversation_is_continued_where_it_differs() {
    let first = r#"[{"role": "user", "content": "Is 12 even or odd?"}]"#;
    let second = r#"[{"role": "user", "content": "Is 12 even or odd?"},
        {"role": "assistant", "content": "12 is even."}, {"role": "user", "content": "Spell 42."}]"#;
    let generator = Generator::open(&example(), &[]).unwrap();
    generator.chat(first).unwrap();
    assert_eq!(generator.rest(), "12 is even.");
    generator.chat(second).unwrap();
    assert_eq!(generator.rest(), "Forty-two.");
    let fresh = generator.beside(&[]).unwrap();
    fresh.chat(second).unwrap();
    assert_eq!(fresh.rest(), "Forty-two.");
    assert_eq!(fresh.tokens(0), generator.tokens(0));
}

#[test]
fn sampled_sequences_differ_and_a_seed_repeats_them() {
    let settings =
        [("sequences", "4"), ("sample", "1"), ("top_k", "0"), ("temperature", "1.5"), ("seed", "11")];
    let run = |generator: &Generator| -> Vec<Vec<i32>> {
        generator.append_text("Count from 3").unwrap();
        for _ in 0..30 {
            if generator.next(4).unwrap().1 {
                break;
            }
        }
        (0..4).map(|sequence| generator.tokens(sequence)).collect()
    };
    let generator = Generator::open(&example(), &settings).unwrap();
    let first = run(&generator);
    assert!(first.iter().skip(1).any(|tokens| *tokens != first[0]), "{first:?}");
    assert_eq!(run(&generator.beside(&settings).unwrap()), first);
    generator.rewind(0).unwrap();
    generator.set("seed", "11").unwrap();
    assert_eq!(run(&generator), first);
    generator.rewind(0).unwrap();
    generator.set("seed", "12").unwrap();
    assert_ne!(run(&generator), first);
}

#[test]
fn scores_are_what_the_next_token_is_chosen_by() {
    let generator = Generator::open(&example(), &[]).unwrap();
    generator.append_text("<|user|>What is 2 plus 2?<|end|><|assistant|>").unwrap();
    let scores = generator.scores();
    assert_eq!(scores.len(), 320);
    let best = (0..320).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap() as i32;
    assert_eq!(generator.scores(), scores);
    assert_eq!(generator.take(1), [best]);
    assert_eq!(generator.encode("<|end|>"), [3]);
}
