//! PTX as the library holds it: without comments and indentation, which are a fifth of Clang's.

/// PTX without what means nothing.
pub(super) fn without_comments(ptx: &str) -> String {
    let mut text = String::with_capacity(ptx.len());
    for line in ptx.lines() {
        let line = line.split("//").next().unwrap_or(line).trim();
        if !line.is_empty() {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}
