//! Options about what librukh compiles and keeps by itself, under the names that they have had: a folder, or a file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::error::{Result, fail};
use crate::library::SessionOptions;

/// Where compiled parts are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CompiledModels {
    folder: Option<String>,
    /// The file of a model that is one part; each of several has a word of its own in the name.
    file: Option<PathBuf>,
}

/// Names of the folder, the first that is given counts.
const FOLDER: &[&str] = &["model_cache_dir", "migraphx_model_cache_dir", "cache_dir"];
const NO_FOLDER: &str = "disable_caching";
const FILE: &str = "compiled_model_path";

/// Whether a compiled model is saved, or loaded, and the names that its path has had.
const SAVE: (&str, &[&str]) =
    ("migraphx_save_compiled_model", &["migraphx_save_model_path", "migraphx_save_compiled_path"]);
const LOAD: (&str, &[&str]) =
    ("migraphx_load_compiled_model", &["migraphx_load_model_path", "migraphx_load_compiled_path"]);

impl CompiledModels {
    /// Whether an option is one of these.
    pub(crate) fn has(key: &str) -> bool {
        let named = |(flag, names): (&str, &[&str])| key == flag || names.contains(&key);
        FOLDER.contains(&key) || key == NO_FOLDER || key == FILE || named(SAVE) || named(LOAD)
    }

    /// What the options say. A compiled model that is to be loaded must be there.
    pub(crate) fn of(options: &HashMap<String, String>) -> Result<CompiledModels> {
        let text = |name: &str| options.get(name).filter(|value| !value.is_empty());
        let folder = FOLDER.iter().find_map(|name| text(name)).cloned();
        let folder = if flag(options, NO_FOLDER)? { None } else { folder };
        let (save, load) = (path(options, SAVE)?, path(options, LOAD)?);
        if let Some(file) = load.as_ref().filter(|file| !file.is_file()) {
            fail!(
                NoSuchFile,
                "option \"{}\": there is no compiled model \"{}\"; save one first with \"{}\"",
                LOAD.0,
                file.display(),
                SAVE.0
            );
        }
        let given = [text(FILE).map(PathBuf::from), save, load];
        let mut files = given.into_iter().flatten();
        let file = files.next();
        if let (Some(one), Some(other)) = (&file, files.find(|other| Some(other) != file.as_ref())) {
            fail!(
                InvalidArgument,
                "options \"{FILE}\", \"{}\" and \"{}\" name \"{}\" and \"{}\"; a session has one compiled model: give one name",
                SAVE.0,
                LOAD.0,
                one.display(),
                other.display()
            );
        }
        Ok(CompiledModels { folder, file })
    }

    /// Lets librukh keep a part: the whole model, or the one that the word stands for.
    pub(crate) fn set(&self, options: &mut SessionOptions, part: Option<&str>) -> Result<()> {
        if let Some(folder) = &self.folder {
            options.set("model_cache_dir", folder)?;
        }
        if let Some(file) = &self.file {
            options.set(FILE, &file_of(file, part).to_string_lossy())?;
        }
        Ok(())
    }
}

/// The file of a part: `model.rukh` for a whole model, `model.WORD.rukh` for others.
fn file_of(file: &Path, part: Option<&str>) -> PathBuf {
    let Some(part) = part else { return file.to_owned() };
    let ending = file.extension().map(|ending| format!(".{}", ending.to_string_lossy())).unwrap_or_default();
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    file.with_file_name(format!("{stem}.{part}{ending}"))
}

/// The path, where the flag is set.
fn path(options: &HashMap<String, String>, (name, paths): (&str, &[&str])) -> Result<Option<PathBuf>> {
    if !flag(options, name)? {
        return Ok(None);
    }
    match paths.iter().find_map(|path| options.get(*path).filter(|path| !path.is_empty())) {
        Some(path) => Ok(Some(path.into())),
        None => fail!(InvalidArgument, "option \"{name}\" needs \"{}\", the name of a file", paths[0]),
    }
}

fn flag(options: &HashMap<String, String>, name: &str) -> Result<bool> {
    match options.get(name).map(String::as_str) {
        None | Some("" | "0" | "false" | "False") => Ok(false),
        Some("1" | "true" | "True") => Ok(true),
        Some(value) => fail!(InvalidArgument, "option \"{name}\" is \"{value}\"; allowed is 0 or 1"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> std::result::Result<CompiledModels, String> {
        assert!(pairs.iter().all(|(key, _)| CompiledModels::has(key)));
        let options = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        CompiledModels::of(&options).map_err(|error| error.message)
    }

    #[test]
    fn each_name_means_what_it_meant() {
        let there = std::env::current_exe().unwrap();
        let there = there.to_str().unwrap();
        for (pairs, folder, file) in [
            (&[][..], None, None),
            (&[("model_cache_dir", "a")], Some("a"), None),
            (&[("migraphx_model_cache_dir", "a")], Some("a"), None),
            (&[("cache_dir", "a"), ("disable_caching", "0")], Some("a"), None),
            (&[("cache_dir", "a"), ("disable_caching", "1")], None, None),
            (&[("compiled_model_path", "f")], None, Some("f")),
            (&[("migraphx_save_compiled_model", "1"), ("migraphx_save_model_path", "f")], None, Some("f")),
            (
                &[("migraphx_save_compiled_model", "True"), ("migraphx_save_compiled_path", "f")],
                None,
                Some("f"),
            ),
            (&[("migraphx_save_compiled_model", "0"), ("migraphx_save_model_path", "f")], None, None),
            (
                &[("migraphx_load_compiled_model", "1"), ("migraphx_load_model_path", there)],
                None,
                Some(there),
            ),
            (
                &[("migraphx_load_compiled_model", "1"), ("migraphx_load_compiled_path", there)],
                None,
                Some(there),
            ),
            (&[("migraphx_load_compiled_model", "False"), ("migraphx_load_model_path", "no")], None, None),
        ] {
            let expected =
                CompiledModels { folder: folder.map(str::to_owned), file: file.map(PathBuf::from) };
            assert_eq!(of(pairs).unwrap(), expected, "{pairs:?}");
        }
    }

    #[test]
    fn what_does_not_fit_says_so() {
        for (pairs, part) in [
            (&[("migraphx_save_compiled_model", "1")][..], "needs \"migraphx_save_model_path\""),
            (&[("migraphx_load_compiled_model", "yes")], "\"yes\"; allowed is 0 or 1"),
            (
                &[("migraphx_load_compiled_model", "1"), ("migraphx_load_model_path", "/no/such.rukh")],
                "save one first",
            ),
            (
                &[
                    ("compiled_model_path", "a"),
                    ("migraphx_save_compiled_model", "1"),
                    ("migraphx_save_model_path", "b"),
                ],
                "name \"a\" and \"b\"",
            ),
        ] {
            let error = of(pairs).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn each_part_has_a_file() {
        for (file, part, expected) in [
            ("/a/m.rukh", None, "/a/m.rukh"),
            ("/a/m.rukh", Some("0c"), "/a/m.0c.rukh"),
            ("m", Some("1"), "m.1"),
        ] {
            assert_eq!(file_of(Path::new(file), part), Path::new(expected));
        }
    }
}
