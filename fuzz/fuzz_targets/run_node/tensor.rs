//! Tensors of the drawn models: small numbers in any element type.

use crate::protobuf::Message;

/// An element type, numbered as in `TensorProto.DataType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element(pub i32);

impl Element {
    pub const STRING: Element = Element(8);

    /// Bits that an element takes in a file.
    fn bits(self) -> usize {
        match self.0 {
            25 | 26 => 2,
            21..=23 => 4,
            4 | 5 | 10 | 16 => 16,
            1 | 6 | 12 => 32,
            7 | 11 | 13 | 14 => 64,
            15 => 128,
            _ => 8,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Tensor {
    pub element: Element,
    pub shape: Vec<i64>,
    /// One small number for each element.
    pub values: Vec<i8>,
}

/// What string attributes and the elements of string tensors are drawn from.
#[rustfmt::skip]
pub const WORDS: &[&str] = &[
    "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", "constant", "reflect", "edge", "wrap", "nearest", "linear",
    "cubic", "bilinear", "bicubic", "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
    "asymmetric", "tf_crop_and_resize", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "stretch",
    "not_larger", "not_smaller", "zeros", "border", "reflection", "none", "add", "mul", "max", "min", "sum",
    "mean", "avg", "output_half_pixel", "forward", "reverse", "bidirectional", "LEFT", "RIGHT", "DCR", "CRD",
    "tanh", "Tanh", "Sigmoid", "Relu", "Affine", "HardSigmoid", "circular", "silu", "gated", "delta",
    "gated_delta", "up", "down", "ij,jk->ik", "...ij,...jk->...ik", "ii->i", "ij->ji", "i,j->ij", "bij,bjk->bik",
    "ijk->", "ii", "TF", "IDF", "TFIDF", "SOFTMAX", "LOGISTIC", "PROBIT", "NONE", "SUM", "AVERAGE", "BRANCH_LEQ",
    "BRANCH_LT", "LEAF", "RBF", "POLY", "LINEAR", "MAX", "L1", "L2", "LOWER", "UPPER", "[a-z]+", "a", "", "é",
];

impl Tensor {
    fn bytes_of(&self, value: i8) -> Vec<u8> {
        let x = value as f64;
        match self.element.0 {
            1 => (x as f32 / 2.0).to_le_bytes().to_vec(),
            11 => (x / 2.0).to_le_bytes().to_vec(),
            // The upper half of an f32 is a bfloat16.
            16 => (x as f32 / 2.0).to_le_bytes()[2..].to_vec(),
            10 => half(value).to_le_bytes().to_vec(),
            4 | 5 => (value as i16).to_le_bytes().to_vec(),
            6 | 12 => (value as i32).to_le_bytes().to_vec(),
            7 | 13 => (value as i64).to_le_bytes().to_vec(),
            14 => [(x as f32).to_le_bytes(), 1f32.to_le_bytes()].concat(),
            15 => [x.to_le_bytes(), 1f64.to_le_bytes()].concat(),
            9 => vec![(value > 1) as u8],
            _ => vec![value as u8],
        }
    }

    /// The bytes as the library has them in memory: narrow elements take a byte each.
    pub fn unpacked(&self) -> Vec<u8> {
        let mask = (1u16 << self.element.bits().min(8)) - 1;
        let masked = self.element.bits() < 8;
        let narrow = |byte: u8| if masked { self.extended(byte & mask as u8) } else { byte };
        self.values.iter().flat_map(|&v| self.bytes_of(v)).map(narrow).collect()
    }

    /// A signed narrow integer is sign-extended in memory.
    fn extended(&self, bits: u8) -> u8 {
        match self.element.0 {
            22 => ((bits as i8) << 4 >> 4) as u8,
            26 => ((bits as i8) << 6 >> 6) as u8,
            _ => bits,
        }
    }

    /// The bytes as a file has them: narrow elements share bytes, the first in the low bits.
    fn packed(&self) -> Vec<u8> {
        let bits = self.element.bits();
        if bits >= 8 {
            return self.unpacked();
        }
        let mask = (1u8 << bits) - 1;
        let pack = |part: &[i8]| {
            part.iter().enumerate().fold(0, |byte, (i, &value)| byte | (value as u8 & mask) << (i * bits))
        };
        self.values.chunks(8 / bits).map(pack).collect()
    }

    pub fn strings(&self) -> Vec<&'static str> {
        self.values.iter().map(|&v| WORDS[v.unsigned_abs() as usize % WORDS.len()]).collect()
    }

    /// As a `TensorProto`.
    pub fn encode(&self, name: &str) -> Message {
        let mut tensor = Message::default();
        self.shape.iter().for_each(|&n| tensor.int(1, n));
        tensor.int(2, self.element.0 as i64);
        tensor.bytes(8, name.as_bytes());
        if self.element == Element::STRING {
            self.strings().iter().for_each(|s| tensor.bytes(6, s.as_bytes()));
        } else {
            tensor.bytes(9, &self.packed());
        }
        tensor
    }
}

/// A small integer, halved, as the bits of a float16.
fn half(value: i8) -> u16 {
    let bits = (value as f32 / 2.0).to_bits();
    let exponent = (bits >> 23 & 0xff) as i32 - 127 + 15;
    if exponent <= 0 {
        0
    } else {
        (bits >> 16 & 0x8000) as u16 | (exponent << 10) as u16 | (bits >> 13 & 0x3ff) as u16
    }
}
