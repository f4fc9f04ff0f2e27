//! Writes the file: under another name until all of it is there.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use prost::Message;

use crate::error::{Error, Result};
use crate::model::cannot_write;

use super::checksum::{Checksummer, checksum};
use super::container::{ALIGNMENT, HEADER, Header, PartEntry, Table};

pub(crate) struct Writer {
    path: PathBuf,
    unfinished: PathBuf,
    file: BufWriter<File>,
    length: u64,
    parts: Vec<PartEntry>,
    /// Of the part that is being written.
    checksummer: Option<Checksummer>,
    done: bool,
}

impl Writer {
    /// Nothing has the name `path` until `finish`, or what had it before.
    pub(crate) fn new(path: &Path) -> Result<Self> {
        /// For writers of one process.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.{number}.unfinished", std::process::id()));
        let unfinished = path.with_file_name(name);
        let file = File::create(&unfinished).map_err(|e| failed(path, e))?;
        let (path, file) = (path.to_owned(), BufWriter::with_capacity(1 << 20, file));
        let mut writer =
            Writer { path, unfinished, file, length: 0, parts: Vec::new(), checksummer: None, done: false };
        writer.write(&[0; HEADER])?;
        Ok(writer)
    }

    /// Begins a part, and ends the one before.
    pub(crate) fn begin(&mut self, name: &str) -> Result<()> {
        self.end_part();
        self.fill(ALIGNMENT)?;
        let (name, offset) = (name.to_owned(), self.length);
        self.parts.push(PartEntry { name, offset, length: 0, checksum: Vec::new() });
        self.checksummer = Some(Checksummer::default());
        Ok(())
    }

    /// Appends to the part that was begun, at a multiple of `alignment` in it. Tells where.
    pub(crate) fn append(&mut self, bytes: &[u8], alignment: u64) -> Result<u64> {
        self.fill(alignment)?;
        let start = self.parts.last().map_or(0, |part| self.length - part.offset);
        self.write(bytes)?;
        Ok(start)
    }

    /// A part as a whole.
    pub(super) fn part(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        self.begin(name)?;
        self.append(bytes, 1).map(drop)
    }

    /// Gives the file its name.
    pub(super) fn finish(mut self) -> Result<()> {
        self.end_part();
        let table = Table { parts: std::mem::take(&mut self.parts) }.encode_to_vec();
        let start = self.length;
        self.write(&table)?;
        let header = Header {
            length: self.length,
            table: (start, table.len() as u64),
            table_checksum: checksum(&table),
        };
        let written = (|| {
            self.file.seek(SeekFrom::Start(0))?;
            self.file.write_all(&header.encode())?;
            self.file.flush()?;
            self.file.get_ref().sync_all()?;
            std::fs::rename(&self.unfinished, &self.path)
        })();
        self.done = written.is_ok();
        written.map_err(|e| failed(&self.path, e))
    }

    fn end_part(&mut self) {
        if let (Some(checksummer), Some(part)) = (self.checksummer.take(), self.parts.last_mut()) {
            part.length = self.length - part.offset;
            part.checksum = checksummer.finish().to_vec();
        }
    }

    fn fill(&mut self, alignment: u64) -> Result<()> {
        let gap = self.length.next_multiple_of(alignment) - self.length;
        self.write(&vec![0; gap as usize])
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|e| failed(&self.path, e))?;
        self.length += bytes.len() as u64;
        if let Some(checksummer) = &mut self.checksummer {
            checksummer.update(bytes);
        }
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.done {
            let _ = std::fs::remove_file(&self.unfinished);
        }
    }
}

fn failed(path: &Path, e: std::io::Error) -> Error {
    cannot_write(path, &e)
}
