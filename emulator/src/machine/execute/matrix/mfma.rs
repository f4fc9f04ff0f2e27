//! MFMA: matrix products of waves of 64 lanes (CDNA3 ISA, "Matrix Arithmetic Instructions"). All lanes take part,
//! whatever EXEC says.

use crate::isa::{Generation, Instruction, Source};

use crate::machine::execute::operands::vector;
use crate::machine::fault::Fault;
use crate::machine::group::Group;
use crate::machine::native::{self, Work};
use crate::machine::numbers::Fp8;
use crate::machine::step::{Action, Setting};
use crate::machine::wave::Wave;

use super::element::{Element, Reading};
use super::number::{Multiply, Number, Places, multiply};
use super::shapes::Mfma;

const LANES: usize = 64;
/// Elements of A or B that a lane may hold.
const MOST_IN_LANE: usize = 16;

pub fn action(
    instruction: &Instruction,
    setting: Setting,
    shape: &'static Mfma,
) -> Result<Action, Box<Fault>> {
    if setting.lanes != LANES {
        return Err(Fault::instruction(format!("{} in a wave of {} lanes", shape.name, setting.lanes)));
    }
    match (shape.a, shape.size) {
        (Element::F64, 16) => build::<f64, 16, 4>(instruction, setting, shape),
        (Element::F64, _) => build::<f64, 4, 1>(instruction, setting, shape),
        (Element::I8, 32) => build::<i32, 32, 4>(instruction, setting, shape),
        (Element::I8, 16) => build::<i32, 16, 4>(instruction, setting, shape),
        (Element::I8, _) => build::<i32, 4, 4>(instruction, setting, shape),
        (_, 32) => build::<f32, 32, 4>(instruction, setting, shape),
        (_, 16) => build::<f32, 16, 4>(instruction, setting, shape),
        _ => build::<f32, 4, 4>(instruction, setting, shape),
    }
}

/// An instruction whose result has `SIZE` columns. Registers of the result are worked on `TOGETHER`.
struct Product<T, const SIZE: usize, const TOGETHER: usize> {
    depth: usize,
    blocks: usize,
    in_lane: usize,
    readings: [Reading; 2],
    a: usize,
    b: usize,
    c: Source,
    d: usize,
    /// Of each `1 << share` blocks of A, the one of this number serves all (CBSZ, ABID).
    share: u8,
    shared: usize,
    /// Where B's lanes come from (BLGP).
    pattern: u8,
    /// GFX940, `f64`: bits for A, B and C (BLGP).
    negate: u8,
    flush: bool,
    multiply: Multiply<T, SIZE, TOGETHER>,
}

fn build<T: Number, const SIZE: usize, const TOGETHER: usize>(
    instruction: &Instruction,
    setting: Setting,
    shape: &'static Mfma,
) -> Result<Action, Box<Fault>> {
    let modifiers = &instruction.modifiers;
    let is_double = shape.a == Element::F64;
    let blocks_together = 1_usize << modifiers.cbsz.min(7);
    if blocks_together > shape.blocks || usize::from(modifiers.abid) >= blocks_together {
        let (cbsz, abid) = (modifiers.cbsz, modifiers.abid);
        return Err(Fault::instruction(format!(
            "{} has {} blocks, which cbsz:{cbsz} abid:{abid} do not fit",
            shape.name, shape.blocks
        )));
    }
    let can_negate = setting.target.generation == Generation::Gfx940;
    if is_double && modifiers.blgp != 0 && !can_negate {
        return Err(Fault::instruction(format!("{} with blgp:{}", shape.name, modifiers.blgp)));
    }
    let [a, b, c, _] = instruction.sources;
    let registers = (shape.in_lane() * shape.a.bits()).div_ceil(32);
    let result = SIZE * SIZE * shape.blocks / LANES * T::WORDS;
    if let Source::Vector(_) = c.source {
        vector(instruction, c, result)?;
    }
    let half_precision = matches!(shape.a, Element::F16 | Element::Bf16);
    let flush = half_precision && setting.target.generation == Generation::Gfx90a;
    Ok(native::action(Product::<T, SIZE, TOGETHER> {
        depth: shape.depth,
        blocks: shape.blocks,
        in_lane: shape.in_lane(),
        readings: [shape.a, shape.b].map(|element| reading(element, flush, setting)),
        a: vector(instruction, a, registers)?,
        b: vector(instruction, b, registers)?,
        c: c.source,
        d: vector(instruction, instruction.destinations[0], result)?,
        share: modifiers.cbsz,
        shared: usize::from(modifiers.abid),
        pattern: if is_double { 0 } else { modifiers.blgp },
        negate: if is_double { modifiers.blgp } else { 0 },
        flush,
        multiply: multiply(),
    }))
}

fn reading(element: Element, flush: bool, setting: Setting) -> Reading {
    let formats = match setting.target.name {
        "gfx950" => [Fp8::E4m3, Fp8::E5m2],
        _ => [Fp8::E4m3Fnuz, Fp8::E5m2Fnuz],
    };
    Reading { element, flush, formats }
}

/// The lane whose value of B a lane uses.
fn source_of_b(pattern: u8, lane: usize) -> usize {
    match pattern {
        0 => lane,
        1 => lane % 32,
        2 => 32 + lane % 32,
        3 => (lane + 16) % LANES,
        _ => 16 * (usize::from(pattern) - 4) % LANES + lane % 16,
    }
}

/// The block and the row of the result that the lanes from `group * size` on hold in their register.
#[inline(always)]
pub fn place(size: usize, is_double: bool, register: usize, group: usize) -> (usize, usize) {
    match (size, is_double) {
        (32, _) => (register / 16, 8 * (register / 4 % 4) + 4 * group + register % 4),
        (16, false) => (register / 4, 4 * group + register % 4),
        (16, true) => (0, 4 * register + group),
        (_, false) => (group, register),
        (_, true) => (group % 4, group / 4),
    }
}

impl<T: Number, const SIZE: usize, const TOGETHER: usize> Product<T, SIZE, TOGETHER> {
    /// A or B, taken apart: for each block and k a row of the elements of `SIZE` lanes.
    #[inline(always)]
    fn unpack(&self, rows: &[[u32; LANES]], reading: Reading, pattern: u8, to: &mut [[T; SIZE]]) {
        for index in 0..self.in_lane {
            let mut values = T::elements(reading, rows, index);
            if pattern != 0 {
                let all = values;
                values = std::array::from_fn(|lane| all[source_of_b(pattern, lane)]);
            }
            for (group, values) in values.as_chunks::<SIZE>().0.iter().enumerate() {
                let (block, part) = (group % self.blocks, group / self.blocks);
                to[block * self.depth + part * self.in_lane + index] = *values;
            }
        }
    }

    #[inline(always)]
    fn flush(values: &mut [T; SIZE]) {
        for value in values {
            *value = value.flush();
        }
    }

    #[inline(always)]
    fn negate(values: &mut [[T; SIZE]]) {
        for value in values.as_flattened_mut() {
            *value = value.negate();
        }
    }
}

impl<T: Number, const SIZE: usize, const TOGETHER: usize> Work for Product<T, SIZE, TOGETHER> {
    #[inline(always)]
    fn run(&self, wave: &mut Wave, _: &mut Group<'_>) -> Result<(), Box<Fault>> {
        let constant = match self.c {
            Source::Vector(_) => T::default(),
            other => T::constant(wave, other)?,
        };
        let mut storage = [[[T::default(); LANES]; MOST_IN_LANE]; 2];
        let [a, b] = storage.each_mut().map(|values| values.as_flattened_mut().as_chunks_mut::<SIZE>().0);
        let rows = wave.vector.rows_mut::<LANES>();
        self.unpack(&rows[self.a..], self.readings[0], 0, a);
        self.unpack(&rows[self.b..], self.readings[1], self.pattern, b);
        if self.negate & 1 != 0 {
            Self::negate(a);
        }
        if self.negate & 2 != 0 {
            Self::negate(b);
        }
        let (is_double, depth) = (T::WORDS == 2, self.depth);
        let count = SIZE * SIZE * self.blocks / LANES;
        for first in (0..count).step_by(TOGETHER) {
            for group in 0..LANES / SIZE {
                let (block, row) = place(SIZE, is_double, first, group);
                let places = Places { first: row, step: if is_double { LANES / SIZE } else { 1 } };
                let mut sums = [[constant; SIZE]; TOGETHER];
                if let Source::Vector(c) = self.c {
                    for (i, sum) in sums.iter_mut().enumerate() {
                        *sum = T::load(&rows[usize::from(c) + (first + i) * T::WORDS..], group * SIZE);
                    }
                }
                if self.negate & 4 != 0 {
                    Self::negate(&mut sums);
                }
                if self.flush {
                    sums.iter_mut().for_each(Self::flush);
                }
                let from = block >> self.share << self.share | self.shared;
                let (a, b) = (&a[from * depth..][..depth], &b[block * depth..][..depth]);
                // SAFETY: the function was chosen for this processor.
                unsafe { (self.multiply)(&mut sums, a, b, places) };
                for (i, mut sum) in sums.into_iter().enumerate() {
                    if self.flush {
                        Self::flush(&mut sum);
                    }
                    T::store(&mut rows[self.d + (first + i) * T::WORDS..], group * SIZE, sum);
                }
            }
        }
        Ok(())
    }
}
