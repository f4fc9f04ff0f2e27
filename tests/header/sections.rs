//! The sections of the header: one for each file of `src/capi` with functions, titled by the file's first line, and a
//! table of contents at the top.

use std::fmt::Write;
use std::path::Path;

use crate::api::Api;

/// Where the table of contents goes: before what holds for all functions.
const BEFORE: &str = " * Errors. Functions return";

/// The header with a title before the first function of each file, and the titles at the top.
pub fn add(header: &str, folder: &Path, sources: &[&str], api: &Api) -> String {
    let mut contents = String::from(
        " * Contents: handles, callbacks and constants; then functions, each section under its number as \"-- 1.\":\n",
    );
    let mut out = header.to_owned();
    let with_functions = sources
        .iter()
        .filter_map(|source| Some((source, api.functions.iter().find(|f| f.source == **source)?)));
    for (number, (source, first)) in (1..).zip(with_functions) {
        let title = title(&folder.join(format!("{source}.rs")));
        writeln!(contents, " *   {number:2}. {title}").unwrap();
        let declared = format!("{}(", first.name);
        let at = out.lines().scan(0, |end, line| {
            *end += line.len() + 1;
            Some((*end - line.len() - 1, line))
        });
        // A comment names other functions; a declaration is outside of comments.
        let at = at.filter(|(_, line)| !line.starts_with(" *") && line.contains(&declared));
        let at = at.map(|(at, _)| at).next().unwrap_or_else(|| panic!("{} is not in the header", first.name));
        let comment = out[..at].rfind("/**").unwrap();
        out.insert_str(comment, &format!("/* -- {number}. {title} -- */\n\n"));
    }
    out.replacen(BEFORE, &format!("{contents} *\n{BEFORE}"), 1)
}

/// The first sentence of a file's own comment.
fn title(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let line = text.lines().next().and_then(|line| line.strip_prefix("//! "));
    line.unwrap_or_else(|| panic!("{}: no title", path.display())).trim_end_matches('.').to_owned()
}
