//! include/rukh/generate.h is what src/capi says. `RUKH_UPDATE=1 cargo test -p rukh-generate --test header` writes it
//! anew.

use std::path::Path;

/// The files with exported items, in the order in which they appear in the header.
const SOURCES: &[&str] = &["types", "options", "generator", "sequences"];

#[test]
fn the_header_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in SOURCES {
        builder = builder.with_src(root.join(format!("src/capi/{source}.rs")));
    }
    let mut text = Vec::new();
    builder.generate().unwrap().write(&mut text);
    let text = String::from_utf8(text).unwrap();
    // C90 has no comments of this form.
    let text = text.replace("#endif // __cplusplus", "#endif  /* __cplusplus */");
    let text = text.replace("#endif  // __cplusplus", "#endif  /* __cplusplus */");
    let text = text.replace("RUKH_API\nrukh_status ", "RUKH_MUST_CHECK RUKH_API\nrukh_status ");
    let path = root.join("include/rukh/generate.h");
    if std::env::var_os("RUKH_UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    assert!(
        text == std::fs::read_to_string(&path).unwrap(),
        "generate/include/rukh/generate.h is not what generate/src/capi says; write it anew with RUKH_UPDATE=1 cargo \
         test -p rukh-generate --test header"
    );
}

#[test]
fn every_source_with_exports_is_in_the_header() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/capi");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if std::fs::read_to_string(&path).unwrap().contains("no_mangle") {
            assert!(SOURCES.contains(&name.as_str()), "{name}");
        }
    }
}
