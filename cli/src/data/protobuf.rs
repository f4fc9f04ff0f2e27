//! ONNX's protobuf messages of values (`TensorProto` and its kin, from onnx.proto and onnx-data.proto).

use prost::Message;

use super::{Data, ElementType, Tensor, Value};

/// Which message a file holds; protobuf does not say it itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Tensor,
    Sequence,
    Map,
    Optional,
}

/// Reads one value.
pub fn read_protobuf(bytes: &[u8], kind: Kind) -> Result<Value, String> {
    let wrong = |e: prost::DecodeError| format!("it is not a {kind:?}Proto: {e}");
    match kind {
        Kind::Tensor => tensor(TensorProto::decode(bytes).map_err(wrong)?).map(Value::Tensor),
        Kind::Sequence => sequence(SequenceProto::decode(bytes).map_err(wrong)?),
        Kind::Map => map(MapProto::decode(bytes).map_err(wrong)?),
        Kind::Optional => optional(OptionalProto::decode(bytes).map_err(wrong)?),
    }
}

#[derive(Clone, PartialEq, Message)]
struct TensorProto {
    #[prost(int64, repeated, tag = "1")]
    dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    data_type: i32,
    #[prost(float, repeated, tag = "4")]
    float_data: Vec<f32>,
    #[prost(int32, repeated, tag = "5")]
    int32_data: Vec<i32>,
    #[prost(bytes = "vec", repeated, tag = "6")]
    string_data: Vec<Vec<u8>>,
    #[prost(int64, repeated, tag = "7")]
    int64_data: Vec<i64>,
    #[prost(string, tag = "8")]
    name: String,
    #[prost(bytes = "vec", optional, tag = "9")]
    raw_data: Option<Vec<u8>>,
    #[prost(double, repeated, tag = "10")]
    double_data: Vec<f64>,
    #[prost(uint64, repeated, tag = "11")]
    uint64_data: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct SequenceProto {
    #[prost(int32, tag = "2")]
    elem_type: i32,
    #[prost(message, repeated, tag = "3")]
    tensor_values: Vec<TensorProto>,
    #[prost(message, repeated, tag = "5")]
    sequence_values: Vec<SequenceProto>,
    #[prost(message, repeated, tag = "6")]
    map_values: Vec<MapProto>,
    #[prost(message, repeated, tag = "7")]
    optional_values: Vec<OptionalProto>,
}

#[derive(Clone, PartialEq, Message)]
struct MapProto {
    #[prost(int32, tag = "2")]
    key_type: i32,
    #[prost(int64, repeated, tag = "3")]
    keys: Vec<i64>,
    #[prost(bytes = "vec", repeated, tag = "4")]
    string_keys: Vec<Vec<u8>>,
    #[prost(message, optional, tag = "5")]
    values: Option<SequenceProto>,
}

#[derive(Clone, PartialEq, Message)]
struct OptionalProto {
    #[prost(int32, tag = "2")]
    elem_type: i32,
    #[prost(message, optional, boxed, tag = "3")]
    tensor_value: Option<Box<TensorProto>>,
    #[prost(message, optional, boxed, tag = "5")]
    sequence_value: Option<Box<SequenceProto>>,
    #[prost(message, optional, boxed, tag = "6")]
    map_value: Option<Box<MapProto>>,
    #[prost(message, optional, boxed, tag = "7")]
    optional_value: Option<Box<OptionalProto>>,
}

fn tensor(proto: TensorProto) -> Result<Tensor, String> {
    let element = ElementType(proto.data_type);
    let dims = proto.dims.iter().map(|&d| usize::try_from(d).map_err(|_| format!("dimension {d}")));
    let dims = dims.collect::<Result<Vec<usize>, String>>()?;
    if element.is_string() {
        return Tensor::from_strings(dims, proto.string_data);
    }
    if element.size() == 0 {
        return Err(format!("element type {} is not known", proto.data_type));
    }
    let count = dims.iter().fold(1usize, |n, &d| n.saturating_mul(d));
    let bytes = match proto.raw_data {
        Some(raw) if element.packed_bits() < 8 => unpack(&raw, element, count),
        Some(raw) => raw,
        // An element of six bits has an entry of its own.
        None if matches!(element.packed_bits(), 2 | 4) => {
            let raw: Vec<u8> = proto.int32_data.iter().map(|&v| v as u8).collect();
            unpack(&raw, element, count)
        }
        None => typed(&proto, element),
    };
    Tensor::from_bytes(element, dims, bytes)
}

/// The bytes of elements that are stored in the field of their type.
fn typed(proto: &TensorProto, element: ElementType) -> Vec<u8> {
    match element.0 {
        1 | 14 => proto.float_data.iter().flat_map(|v| v.to_le_bytes()).collect(),
        11 | 15 => proto.double_data.iter().flat_map(|v| v.to_le_bytes()).collect(),
        7 => proto.int64_data.iter().flat_map(|v| v.to_le_bytes()).collect(),
        13 => proto.uint64_data.iter().flat_map(|v| v.to_le_bytes()).collect(),
        12 => proto.uint64_data.iter().flat_map(|&v| (v as u32).to_le_bytes()).collect(),
        // Everything else lies in int32_data, in its low bytes.
        _ => {
            let width = element.size().min(4);
            proto.int32_data.iter().flat_map(|v| v.to_le_bytes().into_iter().take(width)).collect()
        }
    }
}

/// Elements of two, four or six bits, lowest bits first, as one byte each.
fn unpack(raw: &[u8], element: ElementType, count: usize) -> Vec<u8> {
    let bits = element.packed_bits();
    let signed = matches!(element.name(), "int4" | "int2");
    let spare = 8 - bits as u32;
    (0..count)
        .map_while(|i| {
            let (byte, shift) = (i / 8 * bits + i % 8 * bits / 8, i * bits % 8);
            let next = if shift + bits > 8 { *raw.get(byte + 1)? } else { 0 };
            let cell = (u16::from_le_bytes([*raw.get(byte)?, next]) >> shift << spare) as u8;
            Some(if signed { (cell as i8 >> spare) as u8 } else { cell >> spare })
        })
        .collect()
}

fn sequence(proto: SequenceProto) -> Result<Value, String> {
    let mut items = Vec::new();
    for item in proto.tensor_values {
        items.push(tensor(item).map(Value::Tensor)?);
    }
    for item in proto.sequence_values {
        items.push(sequence(item)?);
    }
    for item in proto.map_values {
        items.push(map(item)?);
    }
    for item in proto.optional_values {
        items.push(optional(item)?);
    }
    Ok(Value::Sequence(items))
}

fn map(proto: MapProto) -> Result<Value, String> {
    let keys = if ElementType(proto.key_type).is_string() {
        Tensor::from_strings(vec![proto.string_keys.len()], proto.string_keys)?
    } else {
        let bytes = proto.keys.iter().flat_map(|k| k.to_le_bytes()).collect();
        Tensor { element: ElementType::INT64, dims: vec![proto.keys.len()], data: Data::Bytes(bytes) }
    };
    let values = sequence(proto.values.unwrap_or_default())?;
    Ok(Value::Map { keys, values: Box::new(values) })
}

fn optional(proto: OptionalProto) -> Result<Value, String> {
    if let Some(inner) = proto.tensor_value {
        return tensor(*inner).map(Value::Tensor);
    }
    if let Some(inner) = proto.sequence_value {
        return sequence(*inner);
    }
    if let Some(inner) = proto.map_value {
        return map(*inner);
    }
    match proto.optional_value {
        Some(inner) => optional(*inner),
        None => Ok(Value::Nothing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_and_raw_fields_agree() {
        let raw = TensorProto {
            dims: vec![3],
            data_type: 22,
            raw_data: Some(vec![0xf1, 0x07]),
            ..Default::default()
        };
        let typed =
            TensorProto { dims: vec![3], data_type: 22, int32_data: vec![0xf1, 7], ..Default::default() };
        for proto in [raw, typed] {
            let Value::Tensor(tensor) = read_protobuf(&proto.encode_to_vec(), Kind::Tensor).unwrap() else {
                panic!("a tensor")
            };
            assert_eq!(tensor.numbers(), [1.0, -1.0, 7.0]);
        }
        // float16 1.0 is 0x3c00, stored in the low bytes of an int32.
        let half =
            TensorProto { dims: vec![1], data_type: 10, int32_data: vec![0x3c00], ..Default::default() };
        assert_eq!(tensor(half).unwrap().numbers(), [1.0]);
    }

    #[test]
    fn wrong_messages_say_why() {
        let short = TensorProto { dims: vec![2], data_type: 1, float_data: vec![1.0], ..Default::default() };
        let negative = TensorProto { dims: vec![-1], data_type: 1, ..Default::default() };
        let unknown = TensorProto { data_type: 99, ..Default::default() };
        for (proto, part) in [(short, "takes 8"), (negative, "dimension -1"), (unknown, "element type 99")] {
            let error = tensor(proto).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        assert!(read_protobuf(&[0xff], Kind::Sequence).unwrap_err().contains("not a SequenceProto"));
    }
}
