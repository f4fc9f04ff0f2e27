//! NumPy's `.npz` archives: a zip file of `.npy` files.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use zip::write::SimpleFileOptions;

use super::{Tensor, read_npy, write_npy};

/// Every array of the archive with its name, in the archive's order.
pub fn read_npz(path: &Path) -> Result<Vec<(String, Tensor)>, String> {
    let file = File::open(path).map_err(|e| e.to_string())?;
    let mut archive = zip::ZipArchive::new(BufReader::new(file)).map_err(|e| e.to_string())?;
    let mut arrays = Vec::with_capacity(archive.len());
    for i in 0..archive.len() {
        let mut entry = archive.by_index(i).map_err(|e| e.to_string())?;
        let name = entry.name().map_err(|e| e.to_string())?.trim_end_matches(".npy").to_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(|e| format!("array \"{name}\": {e}"))?;
        arrays.push((name.clone(), read_npy(&bytes).map_err(|e| format!("array \"{name}\": {e}"))?));
    }
    Ok(arrays)
}

/// Writes an archive that `numpy.load` reads.
pub fn write_npz(path: &Path, arrays: &[(String, &Tensor)]) -> Result<(), String> {
    let file = File::create(path).map_err(|e| e.to_string())?;
    let mut archive = zip::ZipWriter::new(BufWriter::new(file));
    let options =
        SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored).large_file(true);
    for (name, tensor) in arrays {
        archive.start_file(format!("{name}.npy"), options).map_err(|e| e.to_string())?;
        archive.write_all(&write_npy(tensor)).map_err(|e| e.to_string())?;
    }
    archive.finish().map_err(|e| e.to_string())?.flush().map_err(|e| e.to_string())
}
