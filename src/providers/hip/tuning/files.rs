//! Files of results and of problems: read, and written over only where they hold what is written.

use std::io::{self, ErrorKind};
use std::path::Path;

pub(super) fn read(file: &Path) -> io::Result<String> {
    std::fs::read_to_string(file)
}

/// What a file holds that is to be written anew, nothing where it is not there or empty. `parse` says why a text is
/// something else, which is not written over.
pub(super) fn kept<T: Default>(file: &Path, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, String> {
    let text = match read(file) {
        Ok(text) => text,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(T::default()),
        Err(e) => return Err(e.to_string()),
    };
    if text.trim().is_empty() {
        return Ok(T::default());
    }
    parse(&text)
        .map_err(|reason| format!("the file has another text, which is kept: {reason}; name another file"))
}

/// Writes a file that others see as it was or as it is then, and never half of it.
pub(super) fn replace(file: &Path, text: &str) -> Result<(), String> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let new = file.with_file_name(name);
    let done = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, file));
    done.map_err(|e| {
        // Half a file helps nobody.
        let _ = std::fs::remove_file(&new);
        e.to_string()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_something_else_stays() {
        let folder = std::env::temp_dir().join(format!("rukh-tuning-files-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("file");
        let number = |text: &str| text.trim().parse::<u32>().map_err(|e| e.to_string());
        assert_eq!(kept(&file, number), Ok(0));
        replace(&file, "\n").unwrap();
        assert_eq!(kept(&file, number), Ok(0));
        replace(&file, "7").unwrap();
        assert_eq!(kept(&file, number), Ok(7));
        replace(&file, "notes").unwrap();
        assert!(kept(&file, number).unwrap_err().contains("another text, which is kept: invalid digit"));
        std::fs::write(&file, [0xff, 0xfe]).unwrap();
        assert!(kept(&file, number).unwrap_err().contains("UTF-8"));
        // A folder in its place: the error is told, and nothing else is left.
        let taken = folder.join("taken");
        std::fs::create_dir(&taken).unwrap();
        assert!(replace(&taken, "8").is_err());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
