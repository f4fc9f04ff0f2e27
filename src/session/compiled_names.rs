//! Options of a provider about compiled models, which are options of a session here: MIGraphX's names, and this library's own, for
//! programs on ONNX Runtime's interface, which has no other place for them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::error::{Result, excerpt, fail};

/// Names of the folder; the first that is given counts.
const CACHE: [&str; 3] = ["model_cache_dir", "migraphx_model_cache_dir", "cache_dir"];
const NO_CACHE: &str = "disable_caching";
const LIMIT: &str = "model_cache_limit";
const FILE: &str = "compiled_model_path";

/// Whether a compiled model is saved, or loaded, and the names that the path has had.
const SAVE: (&str, [&str; 2]) =
    ("migraphx_save_compiled_model", ["migraphx_save_model_path", "migraphx_save_compiled_path"]);
const LOAD: (&str, [&str; 2]) =
    ("migraphx_load_compiled_model", ["migraphx_load_model_path", "migraphx_load_compiled_path"]);

/// What they say.
#[derive(Debug, Default)]
pub(super) struct CompiledModels {
    pub(super) cache: Option<PathBuf>,
    /// Bytes, 0 for any number.
    pub(super) limit: Option<u64>,
    pub(super) file: Option<PathBuf>,
}

/// Takes them from a provider's options. A compiled model that is to be loaded must be there;
/// one that is to be saved is written unless it is there for the model already.
pub(super) fn take(options: &mut BTreeMap<String, String>) -> Result<CompiledModels> {
    let folders = CACHE.map(|name| options.remove(name).filter(|folder| !folder.is_empty()));
    let cache = folders.into_iter().flatten().next().map(PathBuf::from);
    let cache = if flag(options, NO_CACHE)? { None } else { cache };
    let limit = match options.remove(LIMIT).map(|value| (value.parse().ok(), value)) {
        None => None,
        Some((Some(limit), _)) => Some(limit),
        Some((None, value)) => fail!(
            InvalidArgument,
            "provider option \"{LIMIT}\": \"{}\" is not allowed; allowed is a number of bytes, 0 for no limit",
            excerpt(&value)
        ),
    };
    let own = options.remove(FILE).filter(|file| !file.is_empty()).map(PathBuf::from);
    let (save, load) = (path(options, SAVE)?, path(options, LOAD)?);
    if let Some(file) = load.as_ref().filter(|file| !file.is_file()) {
        fail!(
            NotFound,
            "provider option \"{}\": there is no compiled model \"{}\"; save one first with \"{}\"",
            LOAD.0,
            file.display(),
            SAVE.0
        );
    }
    let mut files = [(FILE, own), (SAVE.0, save), (LOAD.0, load)]
        .into_iter()
        .filter_map(|(option, file)| Some((option, file?)));
    let first = files.next();
    if let Some((option, file)) = &first
        && let Some((another, other)) = files.find(|(_, other)| other != file)
    {
        fail!(
            InvalidArgument,
            "provider options \"{option}\" and \"{another}\" name \"{}\" and \"{}\"; a session has one compiled model: give one name",
            file.display(),
            other.display()
        );
    }
    Ok(CompiledModels { cache, limit, file: first.map(|(_, file)| file) })
}

/// The path, where the flag is set.
fn path(options: &mut BTreeMap<String, String>, (name, paths): (&str, [&str; 2])) -> Result<Option<PathBuf>> {
    let wanted = flag(options, name)?;
    let given = paths.map(|path| options.remove(path).filter(|path| !path.is_empty()));
    match given.into_iter().flatten().next() {
        _ if !wanted => Ok(None),
        Some(path) => Ok(Some(path.into())),
        None => {
            fail!(InvalidArgument, "provider option \"{name}\" needs \"{}\", the name of a file", paths[0])
        }
    }
}

fn flag(options: &mut BTreeMap<String, String>, name: &str) -> Result<bool> {
    match options.remove(name).as_deref() {
        None | Some("" | "0" | "false" | "False") => Ok(false),
        Some("1" | "true" | "True") => Ok(true),
        Some(value) => {
            fail!(
                InvalidArgument,
                "provider option \"{name}\": \"{}\" is not allowed; allowed is 0 or 1",
                excerpt(value)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Status;

    fn taken(pairs: &[(&str, &str)]) -> Result<(CompiledModels, usize)> {
        let mut options = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Ok((take(&mut options)?, options.len()))
    }

    #[test]
    fn each_name_means_what_it_meant() {
        let there = std::env::current_exe().unwrap();
        let there = there.to_str().unwrap();
        for (pairs, cache, file) in [
            (&[("migraphx_model_cache_dir", "folder")][..], Some("folder"), None),
            (&[("model_cache_dir", "folder"), ("cache_dir", "other")], Some("folder"), None),
            (&[("model_cache_dir", ""), ("cache_dir", "folder")], Some("folder"), None),
            (&[("cache_dir", "folder"), ("disable_caching", "False")], Some("folder"), None),
            (&[("cache_dir", "folder"), ("disable_caching", "1")], None, None),
            (&[("migraphx_model_cache_dir", ""), ("migraphx_save_compiled_model", "0")], None, None),
            (&[("compiled_model_path", "a")], None, Some("a")),
            (&[("compiled_model_path", "")], None, None),
            (&[("migraphx_save_compiled_model", "1"), ("migraphx_save_model_path", "a")], None, Some("a")),
            (
                &[("migraphx_save_compiled_model", "True"), ("migraphx_save_compiled_path", "a")],
                None,
                Some("a"),
            ),
            (
                &[("migraphx_load_compiled_model", "1"), ("migraphx_load_model_path", there)],
                None,
                Some(there),
            ),
            (&[("migraphx_load_compiled_model", "False"), ("migraphx_load_model_path", "no")], None, None),
        ] {
            let (found, left) = taken(pairs).unwrap();
            assert_eq!(found.cache, cache.map(PathBuf::from), "{pairs:?}");
            assert_eq!((found.file, left), (file.map(PathBuf::from), 0), "{pairs:?}");
        }
        assert_eq!(taken(&[("device_id", "0")]).unwrap().1, 1);
        assert_eq!(taken(&[]).unwrap().0.limit, None);
        assert_eq!(taken(&[("model_cache_limit", "7")]).unwrap().0.limit, Some(7));
    }

    #[test]
    fn what_does_not_fit_says_so() {
        for (pairs, status, part) in [
            (
                &[("migraphx_save_compiled_model", "1")][..],
                Status::InvalidArgument,
                "needs \"migraphx_save_model_path\"",
            ),
            (&[("migraphx_load_compiled_model", "yes")], Status::InvalidArgument, "allowed is 0 or 1"),
            (
                &[("migraphx_load_compiled_model", "1"), ("migraphx_load_model_path", "/no/such.rukh")],
                Status::NotFound,
                "save one first",
            ),
            (&[("disable_caching", "maybe")], Status::InvalidArgument, "allowed is 0 or 1"),
            (&[("model_cache_limit", "-1")], Status::InvalidArgument, "\"-1\" is not allowed"),
            (
                &[
                    ("compiled_model_path", "a"),
                    ("migraphx_save_compiled_model", "1"),
                    ("migraphx_save_model_path", "b"),
                ],
                Status::InvalidArgument,
                "\"compiled_model_path\" and \"migraphx_save_compiled_model\" name \"a\" and \"b\"",
            ),
        ] {
            let error = taken(pairs).unwrap_err();
            assert!(error.status == status && error.message.contains(part), "{error}");
        }
    }
}
