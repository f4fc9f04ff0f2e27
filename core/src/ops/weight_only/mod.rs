//! Products of floats with a weight of a few bits (domain com.microsoft): MatMulNBits, MatMulBnb4,
//! MatMulBlockQuantizedFp4Weight.

pub mod four_bit_float;
pub mod gather;

use std::sync::Arc;

use crate::graph::Dim;
use crate::tensor::ElementType;

use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// `A · W' + bias`. W has `n` rows of `k` numbers, cut into blocks with a scale and a zero point each:
/// `(q − zero)·scale`. A row begins a block, and its last block is filled up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatMulNBits {
    pub n: usize,
    pub k: usize,
    /// Numbers in a block: a power of two from 16.
    pub block: usize,
    /// 2, 4 or 8; the first number of a byte has its lowest bits.
    pub bits: usize,
    /// To integers of how many bits each block of A may be rounded, with a scale of its own. `accuracy_level` 4 allows 8,
    /// and 1 asks for floats: 32. The others are 16: the largest numbers of a block are finer then than in f16, small ones beside them
    /// coarser.
    pub left_bits: usize,
}

impl MatMulNBits {
    /// Blocks in a row of the weight.
    pub fn blocks(&self) -> usize {
        self.k.div_ceil(self.block)
    }

    /// Bytes of the zero points of a row when they are packed like the weight.
    pub fn zero_bytes(&self) -> usize {
        (self.blocks() * self.bits).div_ceil(8)
    }

    pub(super) fn read(a: &AttributeReader<'_>) -> Result<MatMulNBits, OpError> {
        let bits = a.int("bits", 4)?;
        if !matches!(bits, 2 | 4 | 8) {
            return Err(OpError::attribute("bits", format!("{bits} is not allowed; allowed are 2, 4 and 8")));
        }
        let block = read_size(a, "block_size")?;
        if block < 16 || !block.is_power_of_two() {
            let reason = format!("{block} is not allowed; allowed are powers of two from 16");
            return Err(OpError::attribute("block_size", reason));
        }
        // How far precision may be given up: 0 leaves it open, 1 to 3 are float, float16 and bfloat16, 4 is 8 bits.
        let level = a.int("accuracy_level", 0)?;
        if !(0..=4).contains(&level) {
            let reason = format!("{level} is not allowed; allowed are 0 to 4");
            return Err(OpError::attribute("accuracy_level", reason));
        }
        let packed = a.int("weight_prepacked", 0)?;
        if packed != 0 {
            let reason = format!("{packed} is a layout for one kind of GPU; allowed is 0");
            return Err(OpError::attribute("weight_prepacked", reason));
        }
        let left_bits = match level {
            4 => 8,
            1 => 32,
            _ => 16,
        };
        let (n, k) = (read_size(a, "N")?, read_size(a, "K")?);
        Ok(MatMulNBits { n, k, block, bits: bits as usize, left_bits })
    }

    /// The product's shape where that of A is known; checks the other inputs.
    pub(super) fn shape(&self, cx: &Infer<'_>) -> Result<Option<Vec<Dim>>, OpError> {
        let blocks = self.n * self.blocks();
        check_count(cx, 1, blocks * (self.block * self.bits / 8))?;
        check_count(cx, 2, blocks)?;
        match cx.element_type(3) {
            Some(ElementType::U8) => check_count(cx, 3, self.n * self.zero_bytes())?,
            Some(_) => check_count(cx, 3, blocks)?,
            None => {}
        }
        // Some writers fill the last block up here too.
        let filled = self.blocks() * self.block;
        match count(cx, 4) {
            Some(given) if given == filled => {}
            _ => check_count(cx, 4, self.k)?,
        }
        check_count(cx, 5, self.n)?;
        shape(cx, self.k, self.n)
    }
}

impl Operator for MatMulNBits {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if let Some(shape) = self.shape(cx)? {
            cx.set_shape(0, shape);
        }
        Ok(())
    }
}

/// The table that 4-bit codes look numbers up in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FourBitFloat {
    Fp4,
    Nf4,
}

/// `A · W'`. W has `n` rows of `k` codes, one after the other without gaps, two a byte, the first in
/// the upper bits; each `block` of them shares a factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatMulBnb4 {
    pub n: usize,
    pub k: usize,
    pub block: usize,
    pub code: FourBitFloat,
}

impl MatMulBnb4 {
    fn parse(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
        let code = match a.required_int("quant_type")? {
            0 => FourBitFloat::Fp4,
            1 => FourBitFloat::Nf4,
            other => {
                let reason = format!("{other} is not allowed; allowed are 0 (FP4) and 1 (NF4)");
                return Err(OpError::attribute("quant_type", reason));
            }
        };
        if !a.flag("transB", true)? {
            return Err(OpError::attribute("transB", "0 is for training; allowed is 1"));
        }
        a.ignore("training_mode");
        let block = read_size(a, "block_size")?;
        if block < 16 || !block.is_power_of_two() {
            let reason = format!("{block} is not allowed; allowed are powers of two from 16");
            return Err(OpError::attribute("block_size", reason));
        }
        Ok(Arc::new(MatMulBnb4 { n: read_size(a, "N")?, k: read_size(a, "K")?, block, code }))
    }
}

impl Operator for MatMulBnb4 {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let codes = self.n * self.k;
        check_count(cx, 1, codes.div_ceil(2))?;
        check_count(cx, 2, codes.div_ceil(self.block))?;
        if let Some(shape) = shape(cx, self.k, self.n)? {
            cx.set_shape(0, shape);
        }
        Ok(())
    }
}

/// A required attribute that counts something. Products of three of them fit in 64 bits.
fn read_size(a: &AttributeReader<'_>, name: &str) -> Result<usize, OpError> {
    const MOST: i64 = (1 << 20) - 1;
    let size = a.required_int(name)?;
    if !(1..=MOST).contains(&size) {
        return Err(OpError::attribute(name, format!("{size} is not allowed; allowed are 1 to {MOST}")));
    }
    Ok(size as usize)
}

/// The number of elements of an input, when it is known.
fn count(cx: &Infer<'_>, i: usize) -> Option<usize> {
    let sizes = cx.shape(i)?.iter().map(|d| usize::try_from(d.known()?).ok());
    sizes.collect::<Option<Vec<_>>>()?.into_iter().try_fold(1usize, usize::checked_mul)
}

fn check_count(cx: &Infer<'_>, i: usize, want: usize) -> Result<(), OpError> {
    match count(cx, i) {
        Some(given) if given != want => {
            Err(cx.input_error(i, format!("it has {given} elements; allowed are {want}")))
        }
        _ => Ok(()),
    }
}

/// The output's shape: that of A with its last dimension, `k`, replaced by `n`.
fn shape(cx: &Infer<'_>, k: usize, n: usize) -> Result<Option<Vec<Dim>>, OpError> {
    let Some(a) = cx.shape(0) else { return Ok(None) };
    let Some((last, rows)) = a.split_last() else {
        return Err(cx.input_error(0, "its rank is 0; allowed are ranks from 1"));
    };
    cx.equal(0, "its last dimension", &Dim::from(k), last)?;
    Ok(Some([rows, &[Dim::from(n)]].concat()))
}

pub(super) const HALF_OR_FLOAT: Types = Types::of(&[ElementType::F32, ElementType::F16, ElementType::BF16]);
pub(super) const ZERO_POINTS: Types = HALF_OR_FLOAT.and(Types::of(&[ElementType::U8]));

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new(
        "MatMulNBits",
        &[1],
        "A:T1, B:uint8, scales:T1, zero_points?:T3, g_idx?:int32, bias?:T1 -> Y:T1",
        &[("T1", HALF_OR_FLOAT), ("T3", ZERO_POINTS)],
        |a| Ok(Arc::new(MatMulNBits::read(a)?)),
    )
    .domain("com.microsoft"),
    Declaration::new(
        "MatMulBnb4",
        &[1],
        "A:T1, B:uint8, absmax:T1 -> Y:T1",
        &[("T1", HALF_OR_FLOAT)],
        MatMulBnb4::parse,
    )
    .domain("com.microsoft"),
];
