//! The bytes of an adapter's file become its parameters.

use bytes::Bytes;

use crate::error::{Result, Status, excerpt, fail};
use crate::tensor::{Buffer, ElementType, Shape, Tensor, element_count};

use super::flatbuffer::{Reader, Table};
use super::{FORMAT_VERSION, IDENTIFIER, Parameter, Parameters, Versions, is_allowed};

/// Fields of the table "Adapter", by their places in it.
mod adapter {
    pub(super) const FORMAT_VERSION: usize = 0;
    pub(super) const ADAPTER_VERSION: usize = 1;
    pub(super) const MODEL_VERSION: usize = 2;
    pub(super) const PARAMETERS: usize = 3;
}

/// Fields of the table "Parameter".
mod parameter {
    pub(super) const NAME: usize = 0;
    pub(super) const DIMS: usize = 1;
    pub(super) const DATA_TYPE: usize = 2;
    pub(super) const RAW_DATA: usize = 3;
}

/// Fewer bytes no parameter takes: its place in the list, its table, and what is before a name.
const SMALLEST: usize = 24;

/// What a file holds. Elements stay where they are, where that suits their type.
pub(super) fn read(bytes: &Bytes) -> Result<(Versions, Parameters)> {
    let reader = Reader::new(bytes);
    if !reader.has_identifier(IDENTIFIER) {
        fail!(
            InvalidModel,
            "it is no adapter: bytes 4 to 7 of a file of adapters are \"TORT\", those of this one are \"{}\"",
            bytes.get(4..8).unwrap_or_default().escape_ascii()
        );
    }
    let root = reader.root("the adapter")?;
    let format = root.number(adapter::FORMAT_VERSION, "format_version")?;
    if format != FORMAT_VERSION {
        fail!(Unsupported, "its format has version {format}; the library reads version {FORMAT_VERSION}");
    }
    let versions = Versions {
        adapter: root.number(adapter::ADAPTER_VERSION, "adapter_version")?,
        model: root.number(adapter::MODEL_VERSION, "model_version")?,
    };
    let list = root.vector(adapter::PARAMETERS, 4, "parameters")?;
    let mut budget = Budget(bytes.len());
    // No room is made ahead: the list is as long as the file says, and may lead to one table again and again.
    let mut parameters = Parameters::default();
    for (index, at) in list.step_by(4).enumerate() {
        budget.take(SMALLEST, index)?;
        let table = reader.table(at, &format!("parameter {index}"))?;
        parameters.add(read_parameter(bytes, reader, &table, index, &mut budget)?, Status::InvalidModel)?;
    }
    Ok((versions, parameters))
}

fn read_parameter(
    bytes: &Bytes,
    reader: Reader<'_>,
    table: &Table<'_>,
    index: usize,
    budget: &mut Budget,
) -> Result<Parameter> {
    let place = |part: &str| format!("parameter {index}: its {part}");
    let name = table.vector(parameter::NAME, 1, &place("name"))?;
    budget.take(name.len(), index)?;
    let name = match str::from_utf8(reader.slice(name)) {
        Ok("") => fail!(InvalidModel, "parameter {index} has no name"),
        Ok(name) if name.contains('\0') => {
            fail!(
                InvalidModel,
                "parameter {index}: its name \"{}\" has a NUL in it",
                excerpt(name).escape_debug()
            )
        }
        Ok(name) => name.to_owned(),
        Err(e) => {
            fail!(InvalidModel, "parameter {index}: byte {} of its name is not UTF-8", e.valid_up_to())
        }
    };
    let place = |part: &str| format!("parameter \"{}\": its {part}", excerpt(&name));
    let number = table.number(parameter::DATA_TYPE, &place("data_type"))?;
    let Some(ty) = ElementType::from_onnx(number).filter(|ty| is_allowed(*ty)) else {
        fail!(
            Unsupported,
            "{} is {number}; allowed are 1 to 20 of ONNX's types, but for 8 (texts)",
            place("data_type")
        );
    };
    let dims = table.vector(parameter::DIMS, 8, &place("dims"))?;
    budget.take(dims.len(), index)?;
    let shape = read_shape(reader.slice(dims), &place("dims"))?;
    let data = table.vector(parameter::RAW_DATA, 1, &place("raw_data"))?;
    budget.take(data.len(), index)?;
    let wanted = element_count(&shape).and_then(|count| count.checked_mul(ty.size()));
    if wanted != Some(data.len()) {
        let wanted = wanted.map_or("more than memory has".to_owned(), |bytes| bytes.to_string());
        fail!(InvalidModel, "{} has {} bytes; {ty}{shape:?} needs {wanted}", place("raw_data"), data.len());
    }
    if cfg!(target_endian = "big") && ty.size() > 1 {
        fail!(Unsupported, "{} is little-endian, this machine is not", place("raw_data"));
    }
    match Tensor::from_buffer(ty, &shape, Buffer::from_bytes(bytes.slice(data))) {
        Some(tensor) => Ok(Parameter { name: name.into(), tensor: tensor.aligned()? }),
        None => fail!(Internal, "{} does not suit {ty}{shape:?}", place("raw_data")),
    }
}

fn read_shape(bytes: &[u8], what: &str) -> Result<Shape> {
    let mut shape = Shape::new();
    let (dims, _) = bytes.as_chunks::<8>();
    for (axis, dim) in dims.iter().enumerate() {
        let dim = i64::from_le_bytes(*dim);
        match usize::try_from(dim) {
            Ok(dim) => shape.push(dim),
            Err(_) => fail!(InvalidModel, "{what}: dimension {axis} is {dim}; allowed is a number from 0"),
        }
    }
    Ok(shape)
}

/// How many bytes the parameters may still have together. A file in which they overlap could have them come to any
/// size, whose copies no memory holds.
struct Budget(usize);

impl Budget {
    fn take(&mut self, bytes: usize, index: usize) -> Result<()> {
        match self.0.checked_sub(bytes) {
            Some(rest) => self.0 = rest,
            None => fail!(
                InvalidModel,
                "parameter {index}: the names, dimensions and elements up to it come to more bytes than there are; they overlap"
            ),
        }
        Ok(())
    }
}
