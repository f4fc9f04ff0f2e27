//! `TensorProto` and `SparseTensorProto` as tensors.

use bytes::Bytes;

use crate::error::{Error, Result, Status, fail};
use crate::graph::SparseTensor;
use crate::tensor::{Buffer, ElementType, Shape, Tensor, element_count};

use super::external::ExternalData;
use super::proto::tensor_proto::DataLocation;
use super::proto::{SparseTensorProto, TensorProto};
use super::types;

/// The tensor; its elements share the file's memory where their layout allows. They may be
/// misaligned.
pub(super) fn tensor(proto: &TensorProto, external: &mut ExternalData) -> Result<Tensor> {
    let name = &proto.name;
    let ty = types::element_type(&format!("tensor \"{name}\""), proto.data_type)?;
    let shape = dims(name, &proto.dims)?;
    let Some(count) = element_count(&shape)
        .filter(|n| n.checked_mul(ty.size().max(1)).is_some_and(|b| b <= isize::MAX as usize))
    else {
        fail!(
            InvalidModel,
            "tensor \"{name}\": its shape {shape:?} has more elements than memory has addresses"
        );
    };
    if proto.segment.is_some() {
        fail!(Unsupported, "tensor \"{name}\" is stored in segments, which the standard no longer has");
    }
    if ty == ElementType::String {
        return strings(proto, &shape, count);
    }
    // Narrow elements fill bytes; the count was checked to fit memory a byte each.
    let file_bytes = match ty.file_bits() {
        bits @ 0..8 => count / 8 * bits + (count % 8 * bits).div_ceil(8),
        bits => count * (bits / 8),
    };
    if external.is_nowhere(proto) && ty.file_bits() >= 8 {
        return finish(name, ty, &shape, Buffer::absent(file_bytes)?);
    }
    let raw = if proto.data_location == DataLocation::External as i32 {
        external.bytes(proto, file_bytes)?
    } else if !proto.raw_data.is_empty() || count == 0 {
        proto.raw_data.clone()
    } else {
        let typed = typed_data(proto, ty, count)?;
        external.count_copy(typed.len());
        return finish(name, ty, &shape, Buffer::copy_of(&typed)?);
    };
    if raw.len() != file_bytes {
        fail!(
            InvalidModel,
            "tensor \"{name}\": it holds {} bytes, its shape {shape:?} of {ty} needs {file_bytes}",
            raw.len()
        );
    }
    if ty.file_bits() < 8 {
        external.count_copy(count);
        return finish(name, ty, &shape, Buffer::copy_of(&unpack(ty, &raw, count))?);
    }
    if cfg!(target_endian = "big") {
        fail!(Unsupported, "raw tensor data are little-endian, this machine is not");
    }
    finish(name, ty, &shape, Buffer::from_bytes(raw))
}

/// The dense tensor is not made; its size could be anything.
pub(super) fn sparse(proto: &SparseTensorProto, external: &mut ExternalData) -> Result<SparseTensor> {
    let (Some(values), Some(indices)) = (&proto.values, &proto.indices) else {
        fail!(InvalidModel, "a sparse tensor needs values and indices, and one is missing");
    };
    let name = values.name.clone();
    let values = tensor(values, external)?;
    let indices = tensor(indices, external)?;
    let shape = dims(&name, &proto.dims)?.to_vec();
    if indices.ty() != ElementType::I64 || values.ty() == ElementType::String {
        fail!(InvalidModel, "sparse tensor \"{name}\": its indices must be int64 and its values numbers");
    }
    Ok(SparseTensor { values, indices, shape })
}

/// The dense form of a sparse tensor.
pub(super) fn densify(name: &str, sparse: &SparseTensor) -> Result<Tensor> {
    let wrong =
        |reason: &str| Error::new(Status::InvalidModel, format!("sparse tensor \"{name}\": {reason}"));
    let dense = Tensor::zeros(sparse.values.ty(), &sparse.shape)?;
    let indices = sparse.indices.to_ints().unwrap_or_default();
    let rank = sparse.shape.len();
    let linear = sparse.indices.shape().len() == 1;
    let size = sparse.values.ty().size();
    let source = sparse.values.buffer().map(Buffer::bytes).unwrap_or_default();
    if indices.len() != sparse.values.len() * if linear { 1 } else { rank } {
        return Err(wrong("the numbers of indices and values do not fit"));
    }
    let Some(target) = dense.buffer() else { return Err(wrong("its type is not supported")) };
    for i in 0..sparse.values.len() {
        let position = if linear {
            usize::try_from(indices[i]).ok().filter(|&p| p < dense.len())
        } else {
            indices[i * rank..(i + 1) * rank].iter().zip(&sparse.shape).try_fold(0usize, |at, (&c, &d)| {
                let c = usize::try_from(c).ok().filter(|&c| c < d)?;
                Some(at * d + c)
            })
        };
        let Some(at) = position else { return Err(wrong("an index is out of range")) };
        // SAFETY: the tensor was just made and nothing else holds it.
        let bytes = unsafe { target.bytes_mut() };
        bytes[at * size..(at + 1) * size].copy_from_slice(&source[i * size..(i + 1) * size]);
    }
    Ok(dense)
}

fn dims(name: &str, dims: &[i64]) -> Result<Shape> {
    dims.iter()
        .map(|&d| match usize::try_from(d) {
            Ok(d) => Ok(d),
            Err(_) => fail!(InvalidModel, "tensor \"{name}\": its shape {dims:?} has a negative dimension"),
        })
        .collect()
}

fn strings(proto: &TensorProto, shape: &[usize], count: usize) -> Result<Tensor> {
    let name = &proto.name;
    if proto.string_data.len() != count {
        fail!(
            InvalidModel,
            "tensor \"{name}\": it holds {} strings, its shape {shape:?} needs {count}",
            proto.string_data.len()
        );
    }
    let strings = proto
        .string_data
        .iter()
        .map(|s| match std::str::from_utf8(s) {
            Ok(s) => Ok(s.to_owned()),
            Err(_) => fail!(InvalidModel, "tensor \"{name}\": one of its strings is not UTF-8"),
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Tensor::from_strings(shape, strings))
}

fn finish(name: &str, ty: ElementType, shape: &[usize], buffer: Buffer) -> Result<Tensor> {
    let bytes = buffer.len();
    match Tensor::from_buffer(ty, shape, buffer) {
        Some(tensor) => Ok(tensor),
        None => fail!(
            InvalidModel,
            "tensor \"{name}\": it holds {bytes} bytes, which is not what {ty}{shape:?} needs"
        ),
    }
}

/// Elements from the typed fields (`float_data`, `int32_data`, …), as rukh lays them out.
fn typed_data(proto: &TensorProto, ty: ElementType, count: usize) -> Result<Vec<u8>> {
    use ElementType as T;
    // Complex numbers take two entries; narrow types are packed into bytes, one byte an entry.
    let (field, given, want) = match ty {
        T::F32 => ("float_data", proto.float_data.len(), count),
        T::C64 => ("float_data", proto.float_data.len(), count * 2),
        T::F64 => ("double_data", proto.double_data.len(), count),
        T::C128 => ("double_data", proto.double_data.len(), count * 2),
        T::I64 => ("int64_data", proto.int64_data.len(), count),
        T::U64 | T::U32 => ("uint64_data", proto.uint64_data.len(), count),
        // A 6-bit element has an entry of its own.
        T::F6E2M3 | T::F6E3M2 => ("int32_data", proto.int32_data.len(), count),
        _ if ty.file_bits() < 8 => ("int32_data", proto.int32_data.len(), count.div_ceil(8 / ty.file_bits())),
        _ => ("int32_data", proto.int32_data.len(), count),
    };
    if given != want {
        fail!(
            InvalidModel,
            "tensor \"{}\": {field} has {given} entries, its shape {:?} of {ty} needs {want}",
            proto.name,
            proto.dims
        );
    }
    Ok(match ty {
        T::F32 | T::C64 => proto.float_data.iter().flat_map(|x| x.to_ne_bytes()).collect(),
        T::F64 | T::C128 => proto.double_data.iter().flat_map(|x| x.to_ne_bytes()).collect(),
        T::I64 => proto.int64_data.iter().flat_map(|x| x.to_ne_bytes()).collect(),
        T::U64 => proto.uint64_data.iter().flat_map(|x| x.to_ne_bytes()).collect(),
        T::U32 => proto.uint64_data.iter().flat_map(|&x| (x as u32).to_ne_bytes()).collect(),
        T::I32 => proto.int32_data.iter().flat_map(|x| x.to_ne_bytes()).collect(),
        T::I16 | T::U16 | T::F16 | T::BF16 => {
            proto.int32_data.iter().flat_map(|&x| (x as u16).to_ne_bytes()).collect()
        }
        T::F6E2M3 | T::F6E3M2 => proto.int32_data.iter().map(|&x| x as u8 & 0x3f).collect(),
        _ => {
            let bytes: Bytes = proto.int32_data.iter().map(|&x| x as u8).collect();
            if ty.file_bits() < 8 { unpack(ty, &bytes, count) } else { bytes.to_vec() }
        }
    })
}

/// Elements of two, four or six bits, one a byte: they follow one another from the low bits of each byte
/// on.
fn unpack(ty: ElementType, packed: &[u8], count: usize) -> Vec<u8> {
    let bits = ty.file_bits();
    let mask = (1u8 << bits) - 1;
    (0..count)
        .map(|i| {
            let (byte, shift) = (i / 8 * bits + i % 8 * bits / 8, i * bits % 8);
            let next = if shift + bits > 8 { packed[byte + 1] } else { 0 };
            let code = (u16::from_le_bytes([packed[byte], next]) >> shift) as u8 & mask;
            let negative = ty.is_signed_integer() && code & (1 << (bits - 1)) != 0;
            if negative { code | !mask } else { code }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_types_unpack_low_bits_first() {
        assert_eq!(unpack(ElementType::U4, &[0x21, 0x0f], 3), [1, 2, 15]);
        assert_eq!(unpack(ElementType::I4, &[0x8f], 2), [0xff, 0xf8]);
        // 1, 63, 32, 5 and 9, as the standard lays them out.
        assert_eq!(unpack(ElementType::F6E2M3, &[0xc1, 0x0f, 0x16, 0x09], 5), [1, 63, 32, 5, 9]);
        assert_eq!(unpack(ElementType::I2, &[0b11_10_01_00], 4), [0, 1, 0xfe, 0xff]);
    }
}
