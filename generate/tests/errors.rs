//! What is wrong is said: broken folders, a tokenizer of another model, prompts beyond the context, a full cache.

mod support;

use std::fs;
use std::path::Path;

use support::{Generator, copy, example};

const INVALID_ARGUMENT: i32 = 1;
const INVALID_HANDLE: i32 = 2;
const NOT_FOUND: i32 = 3;
const INVALID_MODEL: i32 = 5;
const UNSUPPORTED: i32 = 6;
const INVALID_INPUT: i32 = 7;

fn replace(folder: &Path, file: &str, from: &str, to: &str) {
    let path = folder.join(file);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{file}: {from}");
    fs::write(path, text.replace(from, to)).unwrap();
}

type Break = fn(&Path);

#[test]
fn folders_that_do_not_fit() {
    let cases: &[(&str, Break, i32, &[&str])] = &[
        (
            "no-config",
            |f| fs::remove_file(f.join("genai_config.json")).unwrap(),
            NOT_FOUND,
            &["has no genai_config.json"],
        ),
        (
            "no-json",
            |f| fs::write(f.join("genai_config.json"), "{").unwrap(),
            INVALID_MODEL,
            &["genai_config.json: EOF"],
        ),
        (
            "no-key",
            |f| replace(f, "genai_config.json", "context_length", "c"),
            INVALID_MODEL,
            &["missing field `context_length`"],
        ),
        ("no-model", |f| fs::remove_file(f.join("model.onnx")).unwrap(), NOT_FOUND, &["model.onnx"]),
        ("no-data", |f| fs::remove_file(f.join("model.onnx.data")).unwrap(), NOT_FOUND, &["model.onnx.data"]),
        ("broken-model", |f| fs::write(f.join("model.onnx"), "no model").unwrap(), INVALID_MODEL, &[]),
        (
            "short-data",
            |f| fs::write(f.join("model.onnx.data"), "short").unwrap(),
            INVALID_MODEL,
            &["model.onnx.data"],
        ),
        (
            "names",
            |f| replace(f, "genai_config.json", "\"logits\": \"logits\"", "\"logits\": \"l\""),
            INVALID_MODEL,
            &["names the output \"l\"", "present.3.value, logits"],
        ),
        (
            "layers",
            |f| replace(f, "genai_config.json", "\"num_hidden_layers\": 4", "\"num_hidden_layers\": 3"),
            UNSUPPORTED,
            &["input \"past_key_values.3.key\""],
        ),
        (
            "heads",
            |f| replace(f, "genai_config.json", "\"head_size\": 32", "\"head_size\": 64"),
            INVALID_MODEL,
            &["does not fit genai_config.json", "[batch, 2, length, 64]"],
        ),
        (
            "stop",
            |f| replace(f, "genai_config.json", "\"eos_token_id\": 3", "\"eos_token_id\": 320"),
            INVALID_MODEL,
            &["model.eos_token_id: 320 is not allowed"],
        ),
        (
            "tokenizer",
            |f| replace(f, "genai_config.json", "\"vocab_size\": 320", "\"vocab_size\": 300"),
            INVALID_MODEL,
            &["does not fit the model", "has 300 tokens", "another model's"],
        ),
        (
            "vocabulary",
            |f| replace(f, "genai_config.json", "\"vocab_size\": 320", "\"vocab_size\": 400"),
            INVALID_MODEL,
            &["the model scores 320 tokens", "has 400"],
        ),
        (
            "broken-tokenizer",
            |f| fs::write(f.join("tokenizer.json"), "{}").unwrap(),
            INVALID_MODEL,
            &["tokenizer.json"],
        ),
        (
            "broken-template",
            |f| fs::write(f.join("chat_template.jinja"), "{% for %}").unwrap(),
            INVALID_MODEL,
            &["the chat template of"],
        ),
    ];
    for (name, breaks, status, parts) in cases {
        let folder = copy(name);
        breaks(&folder);
        let (found, message) = Generator::open(&folder, &[]).expect_err(name);
        println!("{name}: {message}");
        assert_eq!(found, *status, "{name}: {message}");
        for part in *parts {
            assert!(message.contains(part), "{name}: {message}");
        }
        fs::remove_dir_all(folder).unwrap();
    }
    let (status, message) = Generator::open(Path::new("/no/such/folder"), &[]).unwrap_err();
    assert_eq!((status, &*message), (NOT_FOUND, "there is no folder /no/such/folder"));
}

#[test]
fn prompts_and_caches_have_ends() {
    let generator = Generator::open(&example(), &[("max_length", "20"), ("ignore_stop", "1")]).unwrap();
    let refused = |result: Result<(), (i32, String)>, status, parts: &[&str]| {
        let (found, message) = result.unwrap_err();
        println!("{message}");
        assert_eq!(found, status, "{message}");
        for part in parts {
            assert!(message.contains(part), "{message}");
        }
    };
    let next = || generator.next(1).map(drop);
    refused(next(), INVALID_INPUT, &["nothing to go on from"]);
    refused(
        generator.append(&[5; 21]),
        INVALID_INPUT,
        &["has 21 tokens", "\"max_length\", which is 20", "has 256"],
    );
    refused(generator.append(&[320]), INVALID_ARGUMENT, &["token 320", "has 320 tokens"]);
    refused(generator.append(&[-1]), INVALID_ARGUMENT, &["token -1"]);
    refused(generator.rewind(1), INVALID_ARGUMENT, &["length: 1 is not allowed"]);
    refused(generator.chat("[]"), INVALID_ARGUMENT, &["messages: an array of objects"]);
    refused(generator.chat("no json"), INVALID_ARGUMENT, &["this is no JSON"]);
    refused(generator.set("max_length", "30"), INVALID_ARGUMENT, &["read when a generator is made"]);
    generator.append(&[5; 18]).unwrap();
    refused(generator.append(&[5; 3]), INVALID_INPUT, &["has 3 tokens behind the 18 that are there"]);
    assert!(!generator.next(1).unwrap().1);
    assert!(generator.next(1).unwrap().1);
    assert_eq!(generator.stop(0), 2);
    refused(next(), INVALID_INPUT, &["has 20 tokens, as many as the cache holds"]);
    generator.rewind(10).unwrap();
    generator.take(3);
    refused(
        Generator::open(&example(), &[("max_length", "257")]).map(drop),
        INVALID_ARGUMENT,
        &["257 is not allowed", "has 256 tokens"],
    );
    let whole = Generator::open(&example(), &[]).unwrap();
    refused(
        whole.append(&[5; 257]),
        INVALID_INPUT,
        &["has 257 tokens, more than the model's context, which has 256"],
    );
    refused(Generator::open(&example(), &[("provider", "abacus")]).map(drop), INVALID_ARGUMENT, &["abacus"]);
    refused(Generator::open(&example(), &[("session.abc", "1")]).map(drop), INVALID_ARGUMENT, &["abc"]);
}

#[test]
fn a_folder_without_texts_takes_tokens() {
    let folder = copy("tokens-only");
    for file in ["tokenizer.json", "tokenizer_config.json"] {
        fs::remove_file(folder.join(file)).unwrap();
    }
    let generator = Generator::open(&folder, &[]).unwrap();
    let (status, message) = generator.append_text("abc").unwrap_err();
    assert_eq!(status, UNSUPPORTED);
    assert!(message.contains("has no tokenizer.json"), "{message}");
    let (status, message) = generator.chat(r#"[{"role": "user", "content": "x"}]"#).unwrap_err();
    assert_eq!(status, UNSUPPORTED);
    assert!(message.contains("has no chat template"), "{message}");
    generator.append(&[1, 50, 51]).unwrap();
    generator.take(2);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn wrong_handles_are_told_apart() {
    use rukh_generate::capi::*;
    let generator = Generator::open(&example(), &[]).unwrap();
    let mut stop = 0;
    // SAFETY: handles are only compared; the place is a local.
    let of = |handle: *mut rukh_generator, stop: &mut i32| {
        support::call(|error| unsafe { rukh_generator_stop(handle, 0, stop, error) })
    };
    of(generator.0, &mut stop).unwrap();
    assert_eq!(of(std::ptr::null_mut(), &mut stop).unwrap_err().0, INVALID_ARGUMENT);
    assert_eq!(of(generator.0.wrapping_byte_add(1), &mut stop).unwrap_err().0, INVALID_HANDLE);
    let beside = generator.beside(&[]).unwrap();
    let gone = beside.0;
    drop(beside);
    assert_eq!(of(gone, &mut stop).unwrap_err().0, INVALID_HANDLE);
    let mut options = std::ptr::null_mut();
    support::call(|error| unsafe { rukh_generator_options_create(&mut options, error) }).unwrap();
    let (status, message) = of(options.cast(), &mut stop).unwrap_err();
    assert_eq!(status, INVALID_HANDLE);
    assert_eq!(message, "a rukh_generator is needed; a rukh_generator_options was given");
    unsafe { rukh_generator_options_destroy(options) };
}
