//! The pictures of `rukh info`.

use std::path::Path;

use crate::api::{Environment, Session};
use crate::arguments::InfoArguments;
use crate::pictures::{self, Arena, Plan, Times};

/// Whether the arguments ask for a picture.
pub fn are_wanted(arguments: &InfoArguments) -> bool {
    arguments.graph_picture.is_some() || arguments.memory_picture.is_some()
}

/// Writes those that the arguments ask for. The session has run once; `gpu`: the number of the GPU that it ran on.
pub fn write(
    environment: &Environment,
    session: &Session,
    arguments: &InfoArguments,
    gpu: Option<usize>,
) -> Result<(), String> {
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
        let arena = gpu.map(|gpu| arena(environment, gpu)).transpose()?;
        save(file, &pictures::memory(&name, &plan, arena.as_ref())?)?;
    }
    Ok(())
}

fn arena(environment: &Environment, gpu: usize) -> Result<Arena, String> {
    let statistic = |name: &str| environment.memory_statistic(gpu, name).map_err(String::from);
    Arena::read(gpu, &environment.memory_snapshot(gpu)?, statistic)
}

fn save(file: &Path, picture: &str) -> Result<(), String> {
    std::fs::write(file, picture).map_err(|e| format!("{}: {e}", file.display()))
}
