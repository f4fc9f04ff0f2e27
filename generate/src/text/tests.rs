//! Chat templates and texts that grow, beside what transformers and the tokenizer's own decoding give.

use serde_json::json;

use super::{Stream, Template, Tokenizer};
use crate::folder::Folder;

/// With what templates of published models use: namespaces, methods of Python's texts, filters, white space taken away.
const TEMPLATE: &str = r#"{{- bos_token }}
{%- set ns = namespace(system='') %}
{%- for message in messages if message.role == 'system' %}
    {%- set ns.system = message.content.strip() %}
{%- endfor %}
{%- if ns.system %}
    {{- '[system] ' + ns.system + '\n' }}
{%- endif %}
{% for message in messages %}
    {% if message['role'] == 'tool' %}
        {{- raise_exception('no tools here') }}
    {% elif message.role != 'system' %}
[{{ message.role }}] {{ message.content | trim }}{{ eos_token if loop.last else '' }}
    {% endif %}
{% endfor %}
{% if messages[0].content.startswith('{') %}{{ messages[0] | tojson }}{% endif %}
{% if add_generation_prompt %}
[assistant]{% endif %}"#;

#[test]
fn templates_give_what_transformers_gives() {
    let settings = json!({ "bos_token": "<s>", "eos_token": { "content": "</s>", "lstrip": false } });
    let template = Template::new(TEMPLATE.to_owned(), &settings).unwrap();
    // The right column is transformers 5.23's.
    for (messages, expected) in [
        (r#"[{"role": "user", "content": " Hi <b> "}]"#, "<s>[user] Hi <b></s>\n[assistant]"),
        (
            r#"[{"role": "system", "content": " be kind "}, {"role": "user", "content": "a"},
                {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]"#,
            "<s>[system] be kind\n[user] a\n[assistant] b\n[user] c</s>\n[assistant]",
        ),
        (
            r#"[{"role": "user", "content": "{}"}]"#,
            "<s>[user] {}</s>\n{\"role\": \"user\", \"content\": \"{}\"}[assistant]",
        ),
    ] {
        assert_eq!(template.render(messages).unwrap(), expected, "{messages}");
    }
    let refused = template.render(r#"[{"role": "tool", "content": "x"}]"#).unwrap_err();
    assert!(refused.message.contains("no tools here"), "{refused}");
}

#[test]
fn pieces_make_the_text_in_whole_characters() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/generate/model");
    let folder = Folder::read(folder.as_ref()).unwrap();
    let tokenizer = Tokenizer::read(&folder).unwrap().unwrap();
    for text in ["Count from 3 to 5.", "★★ a★", "é ü 漢字 🎈!", " spaces  and\nlines ", ""] {
        let tokens = tokenizer.encode(text, false).unwrap();
        let (mut stream, mut pieces) = (Stream::default(), Vec::new());
        for end in 1..=tokens.len() {
            let (piece, next) = stream.next(&tokenizer, &tokens[..end], end == tokens.len()).unwrap();
            assert!(!piece.contains('\u{FFFD}'), "{text}: {piece}");
            pieces.push(piece);
            stream = next;
        }
        assert_eq!(pieces.concat(), text);
    }
    // Bytes that are no character are given at the end all the same.
    let star = tokenizer.encode("★", false).unwrap();
    let (piece, _) = Stream::default().next(&tokenizer, &star[..1], true).unwrap();
    assert_eq!(piece, "\u{FFFD}");
}
