//! The metadata of kernels: a MessagePack map in a note of the ELF file (LLVM, "User Guide for AMDGPU Backend", Code
//! Object V3 Metadata).

use rmpv::Value;

use super::Error;

/// An argument of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    pub name: String,
    /// From the beginning of the arguments, in bytes.
    pub offset: u32,
    pub size: u32,
    /// `.value_kind`: `global_buffer`, `by_value`, `hidden_block_count_x` …
    pub kind: String,
}

/// What the metadata says about a kernel.
pub(super) struct KernelMetadata {
    pub name: String,
    pub symbol: String,
    pub kernarg_size: u32,
    pub arguments: Vec<Argument>,
    pub sgpr_count: u32,
    pub vgpr_count: u32,
    pub max_workgroup_size: u32,
    pub required_workgroup_size: Option<[u32; 3]>,
    pub dynamic_stack: bool,
}

/// Maps in lists in maps: kernels, their arguments.
const DEPTH: usize = 32;
/// Bytes of arguments that a kernel may have.
const MOST_ARGUMENTS: u32 = 1 << 16;

impl Argument {
    /// Whether the runtime fills it in, not the program.
    pub fn is_hidden(&self) -> bool {
        self.kind.starts_with("hidden_")
    }
}

/// The kernels of a note.
pub(super) fn parse(mut note: &[u8]) -> Result<Vec<KernelMetadata>, Error> {
    let value = rmpv::decode::read_value_with_max_depth(&mut note, DEPTH)
        .map_err(|error| Error::Invalid(format!("the metadata is no MessagePack: {error}")))?;
    let kernels = match field(&value, "amdhsa.kernels") {
        None => &[][..],
        Some(kernels) => {
            kernels.as_array().ok_or_else(|| Error::Invalid("amdhsa.kernels is no list".to_owned()))?
        }
    };
    kernels.iter().map(kernel).collect()
}

fn kernel(value: &Value) -> Result<KernelMetadata, Error> {
    let name = text(value, ".name")
        .ok_or_else(|| Error::Invalid("a kernel in the metadata has no .name".to_owned()))?;
    let symbol = text(value, ".symbol").unwrap_or_else(|| format!("{name}.kd"));
    let kernarg_size = number(value, ".kernarg_segment_size", &name)?.unwrap_or(0);
    if kernarg_size > MOST_ARGUMENTS {
        return Err(Error::Invalid(format!(
            "kernel {name}: {kernarg_size} bytes of arguments, at most {MOST_ARGUMENTS}"
        )));
    }
    let mut arguments = Vec::new();
    for value in field(value, ".args").and_then(Value::as_array).into_iter().flatten() {
        arguments.push(argument(value, &name, kernarg_size)?);
    }
    Ok(KernelMetadata {
        symbol,
        kernarg_size,
        arguments,
        sgpr_count: number(value, ".sgpr_count", &name)?.unwrap_or(0),
        vgpr_count: number(value, ".vgpr_count", &name)?.unwrap_or(0),
        max_workgroup_size: number(value, ".max_flat_workgroup_size", &name)?.unwrap_or(1024),
        required_workgroup_size: workgroup_size(value, &name)?,
        dynamic_stack: field(value, ".uses_dynamic_stack").and_then(Value::as_bool).unwrap_or(false),
        name,
    })
}

fn argument(value: &Value, kernel: &str, kernarg_size: u32) -> Result<Argument, Error> {
    let offset = number(value, ".offset", kernel)?.unwrap_or(0);
    let size = number(value, ".size", kernel)?.unwrap_or(0);
    if offset.checked_add(size).is_none_or(|end| end > kernarg_size) {
        return Err(Error::Invalid(format!(
            "kernel {kernel}: an argument of {size} bytes at {offset} does not fit into the {kernarg_size} bytes of \
             all of them"
        )));
    }
    let name = text(value, ".name").unwrap_or_default();
    let kind = text(value, ".value_kind").unwrap_or_default();
    Ok(Argument { name, offset, size, kind })
}

fn workgroup_size(value: &Value, kernel: &str) -> Result<Option<[u32; 3]>, Error> {
    let Some(list) = field(value, ".reqd_workgroup_size") else {
        return Ok(None);
    };
    let sizes: Vec<u32> =
        list.as_array().into_iter().flatten().filter_map(|it| u32::try_from(it.as_u64()?).ok()).collect();
    match <[u32; 3]>::try_from(sizes) {
        Ok(sizes) => Ok(Some(sizes)),
        Err(_) => Err(Error::Invalid(format!("kernel {kernel}: .reqd_workgroup_size is not three numbers"))),
    }
}

fn field<'a>(map: &'a Value, name: &str) -> Option<&'a Value> {
    map.as_map()?.iter().find(|(key, _)| key.as_str() == Some(name)).map(|(_, value)| value)
}

fn text(map: &Value, name: &str) -> Option<String> {
    Some(field(map, name)?.as_str()?.to_owned())
}

fn number(map: &Value, name: &str, kernel: &str) -> Result<Option<u32>, Error> {
    let Some(value) = field(map, name) else {
        return Ok(None);
    };
    match value.as_u64().and_then(|value| u32::try_from(value).ok()) {
        Some(value) => Ok(Some(value)),
        None => Err(Error::Invalid(format!("kernel {kernel}: {name} is {value}, no number of 32 bits"))),
    }
}
