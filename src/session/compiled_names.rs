//! MIGraphX's options about compiled models, which are options of a session here.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::error::{Result, excerpt, fail};

const CACHE: &str = "migraphx_model_cache_dir";

/// Whether a compiled model is saved, or loaded, and the names that the path has had.
const SAVE: (&str, [&str; 2]) =
    ("migraphx_save_compiled_model", ["migraphx_save_model_path", "migraphx_save_compiled_path"]);
const LOAD: (&str, [&str; 2]) =
    ("migraphx_load_compiled_model", ["migraphx_load_model_path", "migraphx_load_compiled_path"]);

/// What they say.
#[derive(Debug, Default)]
pub(super) struct CompiledModels {
    pub(super) cache: Option<PathBuf>,
    pub(super) file: Option<PathBuf>,
}

/// Takes them from a provider's options. A compiled model that is to be loaded must be there;
/// one that is to be saved is written unless it is there for the model already.
pub(super) fn take(options: &mut BTreeMap<String, String>) -> Result<CompiledModels> {
    let cache = options.remove(CACHE).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let save = path(options, SAVE)?;
    let load = path(options, LOAD)?;
    if let Some(file) = load.as_ref().filter(|file| !file.is_file()) {
        fail!(
            NotFound,
            "provider option \"{}\": there is no compiled model \"{}\"; save one first with \"{}\"",
            LOAD.0,
            file.display(),
            SAVE.0
        );
    }
    if let (Some(save), Some(load)) = (&save, &load)
        && save != load
    {
        fail!(
            InvalidArgument,
            "provider options \"{}\" and \"{}\" name \"{}\" and \"{}\"; a session has one compiled model",
            LOAD.0,
            SAVE.0,
            load.display(),
            save.display()
        );
    }
    Ok(CompiledModels { cache, file: save.or(load) })
}

/// The path, where the flag is set.
fn path(options: &mut BTreeMap<String, String>, (flag, names): (&str, [&str; 2])) -> Result<Option<PathBuf>> {
    let wanted = match options.remove(flag).as_deref() {
        None | Some("" | "0" | "false" | "False") => false,
        Some("1" | "true" | "True") => true,
        Some(value) => {
            fail!(
                InvalidArgument,
                "provider option \"{flag}\": \"{}\" is not allowed; allowed is 0 or 1",
                excerpt(value)
            )
        }
    };
    let paths: Vec<String> = names.iter().filter_map(|name| options.remove(*name)).collect();
    match paths.into_iter().find(|path| !path.is_empty()) {
        _ if !wanted => Ok(None),
        Some(path) => Ok(Some(path.into())),
        None => {
            fail!(InvalidArgument, "provider option \"{flag}\" needs \"{}\", the name of a file", names[0])
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
            (&[(CACHE, "folder")][..], Some("folder"), None),
            (&[(CACHE, ""), ("migraphx_save_compiled_model", "0")], None, None),
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
        ] {
            let error = taken(pairs).unwrap_err();
            assert!(error.status == status && error.message.contains(part), "{error}");
        }
    }
}
