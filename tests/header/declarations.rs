//! `sys/src/lib.rs`: the C API as declarations for clients that are written in Rust.

use std::fmt::Write;

use crate::api::{Api, Function, Kind};

const HEAD: &str = "\
//! The C API of librukh as Rust declares it. `rukh/rukh.h` says what each function does.
//!
//! Made from the library's source by `RUKH_UPDATE=1 cargo test --test header`. Nothing is linked: a library that uses
//! this names librukh in its build script, a program may bring it along as the crate `rukh`.
#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_void};
";

/// The source of the crate `rukh-sys`, as rustfmt would write it.
pub fn rust(api: &Api) -> String {
    let mut out = HEAD.to_owned();
    for named in &api.enums {
        write!(out, "\n{}pub type {} = i32;\n", summary(&named.doc, ""), named.name).unwrap();
        for constant in api.constants.iter().filter(|constant| constant.ty == named.name) {
            writeln!(out, "pub const {}: {} = {};", constant.name, constant.ty, constant.value).unwrap();
        }
    }
    let other =
        api.constants.iter().filter(|constant| !api.enums.iter().any(|named| named.name == constant.ty));
    for constant in other {
        let doc = summary(&constant.doc, "");
        write!(out, "\n{doc}pub const {}: {} = {};\n", constant.name, constant.ty, constant.value).unwrap();
    }
    for named in &api.handles {
        opaque(&mut out, &named.name, &summary(&named.doc, ""));
    }
    for name in ["DLManagedTensor", "DLManagedTensorVersioned"] {
        opaque(&mut out, name, "/// DLPack's own struct.\n");
    }
    opaque(
        &mut out,
        "rukh_table",
        "/// The functions as a table of pointers; `rukh/rukh_table.h` has its members.\n",
    );
    for callback in &api.callbacks {
        let doc = summary(&callback.doc, "");
        write!(
            out,
            "\n{doc}pub type {} = Option<unsafe extern \"C\" fn{}>;\n",
            callback.name,
            signature(callback)
        )
        .unwrap();
    }
    out.push_str("\nunsafe extern \"C\" {\n");
    for function in &api.functions {
        let doc = summary(&function.doc, "    ");
        if let Some(note) = &function.deprecated {
            writeln!(out, "{doc}    #[deprecated(note = \"{note}\")]").unwrap();
        } else {
            out.push_str(&doc);
        }
        writeln!(out, "    pub fn {}{};", function.name, signature(function)).unwrap();
    }
    out.push_str("}\n");
    formatted(&out)
}

fn opaque(out: &mut String, name: &str, doc: &str) {
    write!(out, "\n{doc}#[repr(C)]\npub struct {name} {{\n    _private: [u8; 0],\n}}\n").unwrap();
}

fn signature(function: &Function) -> String {
    let parameters = function
        .parameters
        .iter()
        .map(|parameter| format!("{}: {}", parameter.name, rust_type(&parameter.kind)));
    let returned = function.returns.as_ref().map(|kind| format!(" -> {}", rust_type(kind)));
    format!("({}){}", parameters.collect::<Vec<_>>().join(", "), returned.unwrap_or_default())
}

fn rust_type(kind: &Kind) -> String {
    let mut text = kind.base.clone();
    for constant in &kind.pointers {
        text = format!("{} {text}", if *constant { "*const" } else { "*mut" });
    }
    text
}

/// The first sentence of a comment.
fn summary(doc: &str, indent: &str) -> String {
    let first = doc.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    let end = first.find(". ").map_or(first.len(), |at| at + 1);
    match first[..end].trim() {
        "" => String::new(),
        sentence => format!("{indent}/// {sentence}\n"),
    }
}

/// Formats with the project's own settings.
pub fn formatted(source: &str) -> String {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024", "--config-path", env!("CARGO_MANIFEST_DIR")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("rustfmt comes with the toolchain");
    rustfmt.stdin.take().unwrap().write_all(source.as_bytes()).unwrap();
    let output = rustfmt.wait_with_output().unwrap();
    assert!(output.status.success(), "rustfmt refuses the declarations");
    String::from_utf8(output.stdout).unwrap()
}
