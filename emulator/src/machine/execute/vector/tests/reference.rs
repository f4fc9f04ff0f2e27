//! A second, slow description of vector instructions, after the pseudo-code of the ISA manuals. It shares nothing with
//! the tables that the emulator runs.

pub mod comparisons;
pub mod floats;
pub mod integers;
pub mod rounding;

use std::rc::Rc;

use rounding::{half, half_bits};

/// What an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    B16,
    F16,
    B32,
    F32,
    B64,
    F64,
    /// Two integers, or two floats, of 16 bits: the instruction computes each half by itself.
    PackedB16,
    PackedF16,
}

impl Kind {
    fn parse(text: &str) -> Kind {
        match text {
            "b16" => Kind::B16,
            "f16" => Kind::F16,
            "b32" => Kind::B32,
            "f32" => Kind::F32,
            "b64" => Kind::B64,
            "f64" => Kind::F64,
            "2b16" => Kind::PackedB16,
            "2f16" => Kind::PackedF16,
            other => panic!("{other} is no kind of operand"),
        }
    }

    pub fn registers(self) -> u8 {
        if matches!(self, Kind::B64 | Kind::F64) { 2 } else { 1 }
    }

    pub fn is_half(self) -> bool {
        matches!(self, Kind::B16 | Kind::F16)
    }

    pub fn is_packed(self) -> bool {
        matches!(self, Kind::PackedB16 | Kind::PackedF16)
    }

    pub fn is_float(self) -> bool {
        matches!(self, Kind::F16 | Kind::F32 | Kind::F64 | Kind::PackedF16)
    }
}

/// What an instruction reads in one lane.
#[derive(Clone, Copy, Debug, Default)]
pub struct In {
    pub bits: [u64; 3],
    /// Of the mask.
    pub bit: bool,
    pub lane: u32,
}

impl In {
    pub fn u(self, index: usize) -> u32 {
        self.bits[index] as u32
    }

    /// As a signed number, in a type that no operation overflows.
    pub fn i(self, index: usize) -> i128 {
        i128::from(self.bits[index] as i32)
    }

    /// As an unsigned number, likewise.
    pub fn n(self, index: usize) -> i128 {
        i128::from(self.u(index))
    }

    /// 16 bits with a sign, and without one.
    pub fn i16(self, index: usize) -> i128 {
        i128::from(self.bits[index] as i16)
    }

    pub fn n16(self, index: usize) -> i128 {
        i128::from(self.bits[index] as u16)
    }

    pub fn f(self, index: usize) -> f32 {
        f32::from_bits(self.u(index))
    }

    pub fn d(self, index: usize) -> f64 {
        f64::from_bits(self.bits[index])
    }

    pub fn h(self, index: usize) -> f64 {
        half(self.bits[index] as u16)
    }
}

/// How far a float may be from the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Exactness {
    Exact,
    /// Units in the last place.
    Units(u64),
}

/// What an instruction computes in a lane: its result, and a bit.
pub type Compute = Rc<dyn Fn(In) -> (u64, bool)>;

/// An instruction.
#[derive(Clone)]
pub struct Reference {
    pub name: String,
    pub inputs: Vec<Kind>,
    /// `None` where only bits are written.
    pub output: Option<Kind>,
    pub reads_bits: bool,
    pub writes_bits: bool,
    pub compute: Compute,
    /// With CLAMP, where that is not a bound of a float.
    pub clamped: Option<Compute>,
    pub exactness: Exactness,
}

/// All that there are.
pub fn all() -> Vec<Reference> {
    [integers::references(), floats::references(), comparisons::references()].concat()
}

/// Instructions with these names that compute the same. `signature`: kinds of the sources, `>`, kind of the result;
/// `bit` stands for a bit of a mask on either side.
pub fn rows(names: &str, signature: &str, compute: impl Fn(In) -> (u64, bool) + 'static) -> Vec<Reference> {
    let compute: Compute = Rc::new(compute);
    let (inputs, outputs) = signature.split_once('>').expect("a signature has a result");
    let split = |text: &str| -> (Vec<Kind>, bool) {
        let words: Vec<&str> = text.split_whitespace().collect();
        let kinds = words.iter().filter(|word| **word != "bit").map(|word| Kind::parse(word)).collect();
        (kinds, words.contains(&"bit"))
    };
    let ((inputs, reads_bits), (output, writes_bits)) = (split(inputs), split(outputs));
    let make = |name: &str| Reference {
        name: name.to_owned(),
        inputs: inputs.clone(),
        output: output.first().copied(),
        reads_bits,
        writes_bits,
        compute: compute.clone(),
        clamped: None,
        exactness: Exactness::Exact,
    };
    names.split_whitespace().map(make).collect()
}

/// The same with a result for CLAMP.
pub fn clamped(
    mut references: Vec<Reference>,
    compute: impl Fn(In) -> (u64, bool) + 'static,
) -> Vec<Reference> {
    let compute: Compute = Rc::new(compute);
    references.iter_mut().for_each(|reference| reference.clamped = Some(compute.clone()));
    references
}

/// The same with results that may differ a little.
pub fn within(units: u64, mut references: Vec<Reference>) -> Vec<Reference> {
    references.iter_mut().for_each(|reference| reference.exactness = Exactness::Units(units));
    references
}

/// The low bits of a number.
pub fn low(value: i128) -> (u64, bool) {
    (value as u64, false)
}

pub fn single(value: f32) -> (u64, bool) {
    (value.to_bits().into(), false)
}

pub fn double(value: f64) -> (u64, bool) {
    (value.to_bits(), false)
}

pub fn short(value: f64) -> (u64, bool) {
    (half_bits(value).into(), false)
}
