//! docs/options.md and the comments of the header have every option and environment variable that the library has, with
//! its default, and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::ptr::{null, null_mut};

use rukh::capi::*;

/// The page, and what is documented of the variables of what stands on the library.
const PAGE: &str = "docs/options.md";

#[test]
fn session_options_are_documented() {
    // SAFETY: in this function, handles are live and destroyed once.
    unsafe {
        let mut options = null_mut();
        assert_eq!(rukh_session_options_create(&mut options, null_mut()), RUKH_OK);
        let mut code = entries(
            &|index, buf, cap, needed| rukh_session_options_key(options, index, buf, cap, needed, null_mut()),
            &|key, buf, cap, needed| rukh_session_options_get(options, key, buf, cap, needed, null_mut()),
        );
        rukh_session_options_destroy(options);
        // A family of keys, one for each dimension.
        code.insert("dim.NAME".to_owned(), String::new());
        compare(&code, &rows("Session options", "key"));
        comment_names(&code, "rukh_session_options_create");
    }
}

#[test]
fn environment_options_are_documented() {
    // SAFETY: as above.
    unsafe {
        let mut options = null_mut();
        assert_eq!(rukh_environment_options_create(&mut options, null_mut()), RUKH_OK);
        let code = entries(
            &|index, buf, cap, needed| {
                rukh_environment_options_key(options, index, buf, cap, needed, null_mut())
            },
            &|key, buf, cap, needed| rukh_environment_options_get(options, key, buf, cap, needed, null_mut()),
        );
        rukh_environment_options_destroy(options);
        compare(&code, &rows("Environment options", "key"));
        comment_names(&code, "rukh_environment_options_create");
    }
}

#[test]
fn run_options_are_documented() {
    // SAFETY: as above.
    unsafe {
        let mut options = null_mut();
        assert_eq!(rukh_run_options_create(&mut options, null_mut()), RUKH_OK);
        let code = entries(
            &|index, buf, cap, needed| rukh_run_options_key(options, index, buf, cap, needed, null_mut()),
            &|key, buf, cap, needed| rukh_run_options_get(options, key, buf, cap, needed, null_mut()),
        );
        rukh_run_options_destroy(options);
        compare(&code, &rows("Run options", "key"));
        comment_names(&code, "rukh_run_options_create");
    }
}

#[test]
fn options_of_the_hip_provider_are_documented() {
    // SAFETY: as above; what the texts point to lives during the call.
    let (code, session) = unsafe {
        let mut options = null_mut();
        assert_eq!(rukh_session_options_create(&mut options, null_mut()), RUKH_OK);
        let session = entries(
            &|index, buf, cap, needed| rukh_session_options_key(options, index, buf, cap, needed, null_mut()),
            &|key, buf, cap, needed| rukh_session_options_get(options, key, buf, cap, needed, null_mut()),
        );
        let name = c"hip".as_ptr();
        assert_eq!(rukh_session_options_add_provider(options, name, null(), null(), 0, null_mut()), RUKH_OK);
        let code = entries(
            &|index, buf, cap, needed| {
                rukh_session_options_provider_key(options, 0, index, buf, cap, needed, null_mut())
            },
            &|key, buf, cap, needed| {
                rukh_session_options_provider_get(options, 0, key, buf, cap, needed, null_mut())
            },
        );
        rukh_session_options_destroy(options);
        (code, session)
    };
    let mut page = rows("Options of the provider hip", "key");
    // The provider takes these for the session.
    page.retain(|key, _| code.contains_key(key) || !session.contains_key(key));
    compare(&code, &page);
}

#[test]
fn keys_of_onnx_runtimes_are_documented() {
    let source = read("src/session/ort_keys.rs");
    let literals = literals(&source);
    let code: BTreeMap<String, String> = literals
        .iter()
        .zip(&literals[1..])
        .filter(|(key, _)| key.starts_with("session."))
        .map(|(key, own)| (key.clone(), own.clone()))
        .collect();
    assert!(code.len() >= 7, "{code:?}");
    let page = rows("Session options", "key of ONNX Runtime's");
    let keys = |rows: &BTreeMap<String, String>| rows.keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&page), keys(&code));
    for (key, own) in &code {
        let said = page[key].split([':', ',', ' ']).next().unwrap_or_default();
        assert_eq!(said.trim_matches('`'), own, "{key}");
    }
    comment_names(&code, "rukh_session_options_create");
}

#[test]
fn environment_variables_are_documented() {
    let mut code = BTreeSet::new();
    for folder in ["src", "core/src", "cpu/src"] {
        variables_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut code);
    }
    let page: BTreeSet<String> = rows("Environment variables", "variable").into_keys().collect();
    assert!(code.len() >= 20, "{code:?}");
    assert_eq!(page, code);
}

/// Variables of what stands on the library are on pages of their own.
#[test]
fn variables_of_clients_are_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut code = BTreeSet::new();
    for folder in ["python/src", "onnxruntime/src", "onnxruntime-ep/src", "triton/src", "generate/src"] {
        variables_of(&root.join(folder), &mut code);
    }
    let mut text = String::new();
    pages(&root.join("docs"), &mut text);
    assert!(code.contains("RUKH_LIBRARY"), "{code:?}");
    let missing: Vec<&String> = code.iter().filter(|name| !text.contains(&format!("`{name}"))).collect();
    assert!(missing.is_empty(), "no page names {missing:?}");
}

type Ask<'a, T> = &'a dyn Fn(T, *mut c_char, usize, *mut usize) -> rukh_status;

/// Every option with its value.
fn entries(key: Ask<'_, usize>, get: Ask<'_, *const c_char>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for index in 0.. {
        let Some(name) = text(|buf, cap, needed| key(index, buf, cap, needed)) else { break };
        let c_name = CString::new(name.as_str()).unwrap();
        let value = text(|buf, cap, needed| get(c_name.as_ptr(), buf, cap, needed)).unwrap();
        found.insert(name, value);
    }
    assert!(!found.is_empty());
    found
}

fn text(ask: impl Fn(*mut c_char, usize, *mut usize) -> rukh_status) -> Option<String> {
    let (mut buffer, mut needed) = ([0; 4096], 0);
    let status = ask(buffer.as_mut_ptr(), buffer.len(), &mut needed);
    // SAFETY: a call that succeeds writes a text that ends with a NUL.
    (status == RUKH_OK).then(|| unsafe { CStr::from_ptr(buffer.as_ptr()) }.to_str().unwrap().to_owned())
}

/// The rows of the tables of a section whose first column has this title: each name with what the second column says.
fn rows(section: &str, title: &str) -> BTreeMap<String, String> {
    let page = read(PAGE);
    let (_, rest) = page.split_once(&format!("\n## {section}\n")).unwrap_or_else(|| panic!("{section}"));
    let section = rest.split("\n## ").next().unwrap();
    let mut rows = BTreeMap::new();
    let mut inside = false;
    for line in section.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        match cells[0] {
            _ if !line.starts_with('|') => inside = false,
            first if first == title => inside = true,
            first if inside && !first.starts_with("--") => {
                let names: Vec<&str> = first.split('`').skip(1).step_by(2).collect();
                let second = cells.get(1).copied().unwrap_or_default();
                // Several names in one row have as many defaults, or one that holds for each.
                let values: Vec<&str> = second.split(", ").collect();
                for (at, name) in names.iter().enumerate() {
                    let value = if values.len() == names.len() { values[at] } else { second };
                    let before = rows.insert((*name).to_owned(), value.to_owned());
                    assert!(before.is_none(), "{name} has two rows");
                }
            }
            _ => {}
        }
    }
    assert!(!rows.is_empty(), "no table \"{title}\"");
    rows
}

/// Compares the keys, and the defaults where the page says them as values.
fn compare(code: &BTreeMap<String, String>, page: &BTreeMap<String, String>) {
    let keys = |rows: &BTreeMap<String, String>| rows.keys().cloned().collect::<BTreeSet<String>>();
    let (code_keys, page_keys) = (keys(code), keys(page));
    let missing: Vec<_> = code_keys.difference(&page_keys).collect();
    let invented: Vec<_> = page_keys.difference(&code_keys).collect();
    assert!(missing.is_empty(), "{PAGE} lacks {missing:?}");
    assert!(invented.is_empty(), "{PAGE} has {invented:?}, which the library does not know");
    for (key, value) in code {
        let said = match page[key].trim_matches('`') {
            "none" => "",
            "no limit" => "18446744073709551615",
            said => said,
        };
        assert_eq!(said, value, "the default of {key} in {PAGE}");
    }
}

/// The comment of a function names each key in quotes.
fn comment_names(keys: &BTreeMap<String, String>, function: &str) {
    let header = read("include/rukh/rukh.h");
    let at = header.find(&format!("\nrukh_status {function}(")).unwrap_or_else(|| panic!("{function}"));
    let comment = &header[header[..at].rfind("/**").unwrap()..at];
    let missing: Vec<&String> = keys.keys().filter(|key| !comment.contains(&format!("\"{key}\""))).collect();
    assert!(missing.is_empty(), "the comment of {function} in rukh.h does not name {missing:?}");
}

/// Literals of the sources below a folder that are names of environment variables.
fn variables_of(folder: &Path, found: &mut BTreeSet<String>) {
    let constants = read("include/rukh/rukh.h") + &read("generate/include/rukh/generate.h");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let is_source = name.ends_with(".rs") || name.ends_with(".py");
        match path.is_dir() {
            true if name != "tests" && name != "testing" => variables_of(&path, found),
            false if is_source && name != "tests.rs" => {
                let text = std::fs::read_to_string(&path).unwrap();
                let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
                let names = literals(text).into_iter().filter(|literal| is_variable(literal));
                found.extend(names.filter(|name| !constants.contains(&format!("#define {name} "))));
            }
            _ => {}
        }
    }
}

fn is_variable(literal: &str) -> bool {
    let own = ["RUKH_", "ORT_ROCM_", "ORT_MIGRAPHX_", "ORT_LOAD_"].iter().any(|prefix| {
        literal.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && !rest.ends_with('_'))
    });
    let plain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let is_constant = literal.ends_with("_VERSION");
    (own && !is_constant || ["ROCM_PATH", "HIP_PATH", "HIP_VISIBLE_DEVICES"].contains(&literal))
        && literal.chars().all(plain)
}

/// What stands between quotes, without comments.
fn literals(source: &str) -> Vec<String> {
    let code =
        source.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    code.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

fn pages(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages(&path, text);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            *text += &std::fs::read_to_string(&path).unwrap();
        }
    }
}

fn read(file: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}
