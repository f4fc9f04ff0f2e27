//! The pictures of `rukh info`.

use std::path::Path;

use crate::api::Session;
use crate::arguments::InfoArguments;
use crate::pictures::{self, Plan, Times};

/// Whether the arguments ask for a picture.
pub fn are_wanted(arguments: &InfoArguments) -> bool {
    arguments.graph_picture.is_some() || arguments.memory_picture.is_some()
}

/// Writes those that the arguments ask for. The session has run once.
pub fn write(session: &Session, arguments: &InfoArguments) -> Result<(), String> {
    if !are_wanted(arguments) {
        return Ok(());
    }
    let plan = Plan::parse(&session.plan()?)?;
    let path = &arguments.model.path;
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    if let Some(file) = &arguments.graph_picture {
        let times = arguments.profile.as_deref().map(Times::read).transpose()?;
        save(file, &pictures::graph(&name, &plan, times.as_ref())?)?;
    }
    if let Some(file) = &arguments.memory_picture {
        save(file, &pictures::memory(&name, &plan)?)?;
    }
    Ok(())
}

fn save(file: &Path, picture: &str) -> Result<(), String> {
    std::fs::write(file, picture).map_err(|e| format!("{}: {e}", file.display()))
}
