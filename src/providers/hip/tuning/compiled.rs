//! Results of tuning that compiled models hold: read and checked when a model is compiled, used when it is opened.

use std::path::Path;

use crate::error::{Error, Result, Status, fail};

use super::super::code;
use super::super::provider::Provider;
use super::files;
use super::results::{CONDITIONS, Read, Results, missing, shortened};
use super::tuner::Tuner;

/// A text of results, and the GPU that it is for, by machine code.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TargetResults {
    pub(crate) target: String,
    pub(crate) text: String,
}

/// Reads a file of results for a compiled model. An error where no session of this library would take them, or not all.
pub(crate) fn read_results(file: &Path) -> Result<TargetResults> {
    let name = file.display();
    let text = files::read(file).map_err(|e| {
        let status = if e.kind() == std::io::ErrorKind::NotFound { Status::NotFound } else { Status::Io };
        Error::new(status, format!("tuning results \"{name}\": {e}"))
    })?;
    match target_of(&text) {
        Ok(target) => Ok(TargetResults { target, text }),
        Err(reason) => fail!(InvalidArgument, "tuning results \"{name}\": {reason}"),
    }
}

/// How many results a text has.
pub(crate) fn count(text: &str) -> usize {
    Read::of(text).map_or(0, |read| read.results.0.len())
}

/// The GPU that a text is for; why it cannot be compiled in.
fn target_of(text: &str) -> std::result::Result<String, String> {
    let Read { conditions, defects, .. } = Read::of(text)?;
    if let Some(defect) = defects.into_iter().next() {
        return Err(defect);
    }
    let value = |name: &str| conditions.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    if let Some(name) = CONDITIONS.into_iter().find(|name| value(name).is_none()) {
        return Err(missing(name));
    }
    let (library, kernels) =
        (value("rukh").unwrap_or_default(), shortened(value("kernels").unwrap_or_default()));
    if library != env!("CARGO_PKG_VERSION") {
        return Err(format!(
            "they were measured with version {} of the library, and this is {}; tune again with this one",
            shortened(library),
            env!("CARGO_PKG_VERSION")
        ));
    }
    let Some((target, digest)) = kernels.split_once(' ') else {
        return Err(format!("the line \"validate kernels {kernels}\" has no machine code and digest"));
    };
    // A build without kernels for the target cannot tell whether they are the same.
    let own = format!("{:016x}", code::digest(target));
    if code::digest(target) != 0 && own != digest {
        return Err(format!(
            "they were measured with other kernels for {target} (\"{digest}\") than this build of the library has \
             (\"{own}\"); tune again with this one"
        ));
    }
    Ok(target.to_owned())
}

impl Provider {
    /// Uses those results of a compiled model that hold here, below all others; the log tells of those that do not.
    /// `texts`: of all GPUs.
    pub(crate) fn use_compiled_results<'t>(&self, texts: impl Iterator<Item = (&'t str, &'t str)>) {
        let tuner = self.tuner();
        let texts: Vec<&str> =
            texts.filter(|(target, _)| *target == self.target()).map(|(_, text)| text).collect();
        if texts.is_empty() || tuner.options.enable == Some(false) {
            return;
        }
        tuner.choose_from_now_on(self.device(), self.target());
        tuner.add_compiled(&texts);
    }
}

impl Tuner {
    fn add_compiled(&self, texts: &[&str]) {
        let (mut reasons, mut taken) = (Vec::new(), None);
        for text in texts {
            match Results::parse(text, self.validators()) {
                Ok((results, defects)) => {
                    for defect in defects {
                        self.note(
                            true,
                            format!("tuning results of the artifact: {defect}; the line is left out"),
                        );
                    }
                    *taken.get_or_insert(0) += results.0.len();
                    self.add_below(results);
                }
                Err(reason) => reasons.push(reason),
            }
        }
        match taken {
            Some(count) => self.note(false, format!("tuning results of the artifact: {count}")),
            // One machine of several that it has results for.
            None => self
                .note(true, format!("tuning results of the artifact are not used: {}", reasons.join("; "))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(target: &str, version: &str) -> String {
        format!(
            "rukh tuning results 1\nvalidate rukh {version}\nvalidate kernels {target} 0123456789abcdef\nvalidate arch \
             {target}\nvalidate device a card (60 compute units)\nvalidate runtime amd 6.4\nvalidate libraries none\n\
             result gemm a b 1.0\n"
        )
    }

    #[test]
    fn a_text_tells_its_target() {
        let version = env!("CARGO_PKG_VERSION");
        // No build has kernels for this one.
        let text = text("gfx9999", version);
        assert_eq!((target_of(&text), count(&text)), (Ok("gfx9999".to_owned()), 1));
        for (from, to, part) in [
            ("results 1", "shapes 1", "must be \"rukh tuning results 1\""),
            ("b 1.0", "b", "line 8: \"result gemm a b\" is no result"),
            ("validate device a", "# a", "it has no line \"validate device"),
            (version, "0.0.1", "with version 0.0.1 of the library"),
            ("gfx9999 0123456789abcdef", "gfx9999", "has no machine code and digest"),
        ] {
            let reason = target_of(&text.replacen(from, to, 1)).unwrap_err();
            assert!(reason.contains(part), "{part}: {reason}");
        }
    }

    #[test]
    fn files_are_named_in_errors() {
        let error = read_results(Path::new("/none/results.txt")).unwrap_err();
        assert_eq!(error.status, Status::NotFound);
        assert!(error.message.contains("\"/none/results.txt\": "), "{error}");
    }
}
