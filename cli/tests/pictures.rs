//! The pictures of `rukh info`.

mod emulated;

use emulated::{file, library, printed, rukh};
use svg::parser::Event;

/// The texts of a picture, which must be well-formed.
fn texts(name: &str) -> (String, Vec<String>) {
    let picture = std::fs::read_to_string(name).unwrap();
    let mut texts = Vec::new();
    let mut depth = 0;
    for event in svg::read(&picture).unwrap() {
        match event {
            Event::Error(e) => panic!("{name}: {e}"),
            Event::Text(text) => texts.push(text.to_owned()),
            Event::Tag(_, svg::node::element::tag::Type::Start, _) => depth += 1,
            Event::Tag(_, svg::node::element::tag::Type::End, _) => depth -= 1,
            _ => {}
        }
    }
    assert_eq!(depth, 0, "{name}: each element ends");
    // Nothing comes from elsewhere: the one address is the name of SVG.
    assert_eq!(picture.matches("http").count(), 1, "{name}");
    assert!(!picture.contains("href") && !picture.contains("<script") && !picture.contains("@import"));
    (picture, texts)
}

#[test]
fn the_graph_shows_operators_shapes_and_times() {
    let [graph, again, timed, trace] =
        ["graph.svg", "again.svg", "timed.svg", "trace.json"].map(|name| file(name).display().to_string());
    printed(&["info", "digits.onnx", "--dim", "batch=3", "--graph", &graph], &[]);
    let (picture, words) = texts(&graph);
    let has = |words: &[String], part: &str| words.iter().any(|word| word.contains(part));
    for part in
        ["com.microsoft.FusedConv", "image", "scores", "float[3, 1, 8, 8]", "float[3, 10]", "digits.onnx: "]
    {
        assert!(has(&words, part), "{part}: {words:?}");
    }
    assert!(!has(&words, " %"), "{words:?}");
    printed(&["info", "digits.onnx", "--dim", "batch=3", "--graph", &again], &[]);
    assert_eq!(std::fs::read_to_string(&again).unwrap(), picture);

    printed(&["bench", "digits.onnx", "--dim", "batch=3", "--runs", "2", "--trace", &trace], &[]);
    printed(&["info", "digits.onnx", "--dim", "batch=3", "--graph", &timed, "--profile", &trace], &[]);
    let (_, words) = texts(&timed);
    assert!(has(&words, " %") && has(&words, " a run in the nodes of the profile"), "{words:?}");

    for (content, part) in [
        ("[]", "has no times of nodes"),
        ("nothing", "is no JSON"),
        (r#"[{"cat":"node","name":"of another","dur":1}]"#, "no node of the profile is in this model"),
    ] {
        std::fs::write(&trace, content).unwrap();
        let output = rukh(&["info", "digits.onnx", "--graph", &timed, "--profile", &trace], &[]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && message.contains(part), "{message}");
    }
    let output = rukh(&["info", "digits.onnx", "--graph", "/none/graph.svg"], &[]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("/none/graph.svg: "), "{output:?}");
}

#[test]
fn the_memory_shows_blocks_and_the_peak() {
    let memory = file("memory.svg").display().to_string();
    printed(&["info", "digits.onnx", "--dim", "batch=3", "--memory", &memory], &[]);
    let (picture, words) = texts(&memory);
    assert!(words.iter().any(|word| word.starts_with("block of ") && word.contains("; peak ")), "{words:?}");
    assert!(words.iter().any(|word| word == "digits.onnx, memory of the host"), "{words:?}");
    assert!(picture.contains("id=\"peak-") && picture.matches("<title>").count() > 1);
}

#[test]
fn pictures_of_a_gpu_show_its_nodes_and_memory() {
    if library().is_none() {
        return;
    }
    let [graph, memory] = ["gpu.svg", "gpu_memory.svg"].map(|name| file(name).display().to_string());
    let arguments = ["info", "digits.onnx", "--provider", "hip", "--graph", &graph, "--memory", &memory];
    printed(&arguments, &[]);
    let (_, words) = texts(&graph);
    assert!(words.iter().any(|word| word.contains("hip, launch")), "{words:?}");
    let (_, words) = texts(&memory);
    for part in ["digits.onnx, memory of the device", "digits.onnx, what is held of device 0", "reserved"] {
        assert!(words.iter().any(|word| word == part), "{part}: {words:?}");
    }
    assert!(words.iter().any(|word| word.contains(" segments of ")), "{words:?}");
    assert!(words.iter().any(|word| word.ends_with(", active allocated")), "{words:?}");
    // Where the CPU took the place of a GPU there is none to tell of.
    let fallen =
        ["info", "digits.onnx", "--run", "--memory", &memory, "--provider", "hip", "--provider", "cpu"];
    let text = printed(&fallen, &[("AMDEMU_DEVICES", "0")]);
    assert!(!text.contains("memory summary"), "{text}");
    assert!(!texts(&memory).1.iter().any(|word| word.contains("device 0")));
}
