//! The parameters of an adapter become a file.
//!
//! A FlatBuffer is a matter of distances, all forward but for a table's list of fields; so it is written from its
//! beginning to its end, and elements go from where they are into the file.

use std::io::{self, Write};

use crate::error::{Result, excerpt, fail};

use super::{Adapter, FORMAT_VERSION, IDENTIFIER, Parameter};

/// Where elements begin is a multiple of this, so that kernels may take them from a mapped file.
const ALIGNMENT: usize = 64;

/// A FlatBuffer is smaller than this.
const LIMIT: usize = 1 << 31;

/// Where lists of fields and tables stand; the lists come first, since all tables of a kind share one.
const ADAPTER_FIELDS: usize = 8;
const PARAMETER_FIELDS: usize = 20;
const ADAPTER: usize = 32;
const PARAMETERS: usize = 52;

/// Bytes of a table of either kind: the distance to the list of its fields, and four fields.
const TABLE: usize = 20;

/// A file that is ready to be written.
pub(super) struct Layout<'a> {
    /// All but elements.
    head: Vec<u8>,
    /// The elements of each parameter, and the byte before which their number stands.
    elements: Vec<(usize, &'a [u8])>,
}

impl<'a> Layout<'a> {
    pub(super) fn of(adapter: &'a Adapter) -> Result<Self> {
        let parameters = adapter.parameters();
        let tables = PARAMETERS + 4 + 4 * parameters.len();
        let mut end = tables + TABLE * parameters.len();
        let mut places = Vec::with_capacity(parameters.len());
        for parameter in parameters {
            let name = end;
            let dims = next(name + 4 + parameter.name.len() + 1 + 4, 8) - 4;
            end = dims + 4 + 8 * parameter.tensor.shape().len();
            places.push((name, dims));
        }
        let head = end;
        let mut elements = Vec::with_capacity(parameters.len());
        for parameter in parameters {
            let bytes = bytes_of(parameter);
            let first = next(end + 4, ALIGNMENT);
            end = first.saturating_add(bytes.len());
            if end >= LIMIT {
                fail!(
                    Unsupported,
                    "the adapter would have 2 GiB or more with parameter \"{}\" ({} bytes); a file of adapters is smaller",
                    excerpt(&parameter.name),
                    bytes.len()
                );
            }
            elements.push((first, bytes));
        }
        let mut layout = Layout { head: vec![0; head], elements };
        layout.put_head(adapter, tables, &places);
        Ok(layout)
    }

    fn put_head(&mut self, adapter: &Adapter, tables: usize, places: &[(usize, usize)]) {
        self.put_distance(0, ADAPTER);
        self.put(4, IDENTIFIER);
        for list in [ADAPTER_FIELDS, PARAMETER_FIELDS] {
            // Its own length, the table's, and where each of the fields is in the table.
            for (i, number) in [12, TABLE as u16, 4, 8, 12, 16].into_iter().enumerate() {
                self.put(list + 2 * i, &number.to_le_bytes());
            }
        }
        self.put(ADAPTER, &back(ADAPTER, ADAPTER_FIELDS));
        self.put(ADAPTER + 4, &FORMAT_VERSION.to_le_bytes());
        self.put(ADAPTER + 8, &adapter.versions().adapter.to_le_bytes());
        self.put(ADAPTER + 12, &adapter.versions().model.to_le_bytes());
        self.put_distance(ADAPTER + 16, PARAMETERS);
        self.put(PARAMETERS, &(places.len() as u32).to_le_bytes());
        for (i, (parameter, &(name, dims))) in adapter.parameters().iter().zip(places).enumerate() {
            let table = tables + TABLE * i;
            self.put_distance(PARAMETERS + 4 + 4 * i, table);
            self.put(table, &back(table, PARAMETER_FIELDS));
            self.put_distance(table + 4, name);
            self.put_distance(table + 8, dims);
            self.put(table + 12, &(parameter.tensor.ty() as i32).to_le_bytes());
            self.put_distance(table + 16, self.elements[i].0 - 4);
            self.put(name, &(parameter.name.len() as u32).to_le_bytes());
            self.put(name + 4, parameter.name.as_bytes());
            let shape = parameter.tensor.shape();
            self.put(dims, &(shape.len() as u32).to_le_bytes());
            for (axis, &dim) in shape.iter().enumerate() {
                self.put(dims + 4 + 8 * axis, &(dim as i64).to_le_bytes());
            }
        }
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.head[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// At `at`, how far it is from there to `target`.
    fn put_distance(&mut self, at: usize, target: usize) {
        self.put(at, &((target - at) as u32).to_le_bytes());
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.head)?;
        let mut end = self.head.len();
        for &(first, bytes) in &self.elements {
            out.write_all(&[0; ALIGNMENT + 8][..first - 4 - end])?;
            out.write_all(&(bytes.len() as u32).to_le_bytes())?;
            out.write_all(bytes)?;
            end = first + bytes.len();
        }
        Ok(())
    }
}

fn bytes_of(parameter: &Parameter) -> &[u8] {
    parameter.tensor.buffer().map(|buffer| buffer.bytes()).unwrap_or_default()
}

/// How far it is from a table back to the list of its fields.
fn back(table: usize, list: usize) -> [u8; 4] {
    ((table - list) as i32).to_le_bytes()
}

fn next(at: usize, alignment: usize) -> usize {
    at.next_multiple_of(alignment)
}
