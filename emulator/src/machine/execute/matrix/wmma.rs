//! WMMA: products of matrices of 16 rows and columns (RDNA3 ISA and RDNA4 ISA, "Wave Matrix Multiply Accumulate").

use std::marker::PhantomData;

use crate::isa::{Instruction, Modifiers, Source};

use crate::machine::execute::lanes::all;
use crate::machine::execute::operands::vector;
use crate::machine::fault::Fault;
use crate::machine::group::Group;
use crate::machine::native::{self, Work};
use crate::machine::numbers::{Fp8, bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use crate::machine::step::Action;
use crate::machine::wave::Wave;

use super::element::{Element, Reading};
use super::number::{Number, multiply};
use super::shapes::{Product, Wmma};

/// Rows and columns of the result.
const SIZE: usize = 16;
/// The most columns of A.
const DEEPEST: usize = 32;
/// Rows of the result that are worked on at once.
const TOGETHER: usize = 8;

pub fn action<const LANES: usize>(
    instruction: &Instruction,
    is_later: bool,
    shape: &'static Wmma,
) -> Result<Action, Box<Fault>> {
    let layout = Layout { lanes: LANES, is_later };
    let [a, b, c, _] = instruction.sources;
    let registers = (layout.in_lane(shape) * shape.a.bits()).div_ceil(32);
    let result = layout.result_registers(shape.result);
    let modifiers = instruction.modifiers;
    if let Source::Vector(_) = c.source {
        vector(instruction, c, result)?;
    }
    let operands = Operands {
        a: vector(instruction, a, registers)?,
        b: vector(instruction, b, registers)?,
        c: c.source,
        d: vector(instruction, instruction.destinations[0], result)?,
        registers,
    };
    Ok(match shape.result {
        Product::F32 => multiplication::<F32, LANES>(shape, layout, operands, modifiers),
        Product::F16 => multiplication::<F16, LANES>(shape, layout, operands, modifiers),
        Product::Bf16 => multiplication::<Bf16, LANES>(shape, layout, operands, modifiers),
        Product::I32 => multiplication::<I32, LANES>(shape, layout, operands, modifiers),
    })
}

fn multiplication<R: Sum, const LANES: usize>(
    shape: &'static Wmma,
    layout: Layout,
    operands: Operands,
    modifiers: Modifiers,
) -> Action {
    native::action(Multiplication::<R, LANES> { shape, layout, operands, modifiers, result: PhantomData })
}

/// Which lanes and registers hold which elements.
#[derive(Clone, Copy)]
pub struct Layout {
    pub lanes: usize,
    /// GFX12, where lanes do not hold the same elements twice.
    pub is_later: bool,
}

impl Layout {
    /// Groups of 16 lanes that share a row of A or a column of B. Of 16 elements of 4 bits a lane holds eight.
    fn groups(self, shape: &Wmma) -> usize {
        match (self.is_later, self.lanes) {
            (false, _) => 1,
            (true, 64) if shape.depth * shape.a.bits() > 64 => 4,
            _ => 2,
        }
    }

    /// Elements of A or B that a lane holds.
    pub fn in_lane(self, shape: &Wmma) -> usize {
        shape.depth / self.groups(shape)
    }

    /// Which k an element is of.
    pub fn depth_of(self, shape: &Wmma, group: usize, index: usize) -> usize {
        if self.is_later {
            shape.depth / 2 * (group & 1) + self.in_lane(shape) * (group >> 1) + index
        } else {
            index
        }
    }

    /// The row of the result that a group's lanes hold as number `index`.
    pub fn row_of(self, group: usize, index: usize) -> usize {
        if self.is_later {
            index + 8 * (group & 1) + 4 * (group >> 1)
        } else {
            index * self.lanes / SIZE + group
        }
    }

    /// Elements of the result that a lane holds.
    pub fn results_in_lane(self) -> usize {
        SIZE * SIZE / self.lanes
    }

    /// GFX12 packs two elements of 16 bits into a register; GFX11 leaves one half as it is.
    pub fn is_packed(self, product: Product) -> bool {
        self.is_later && matches!(product, Product::F16 | Product::Bf16)
    }

    fn result_registers(self, product: Product) -> usize {
        self.results_in_lane() / if self.is_packed(product) { 2 } else { 1 }
    }
}

struct Operands {
    a: usize,
    b: usize,
    c: Source,
    d: usize,
    /// Registers of A, and of B.
    registers: usize,
}

struct Multiplication<R, const LANES: usize> {
    shape: &'static Wmma,
    layout: Layout,
    operands: Operands,
    modifiers: Modifiers,
    result: PhantomData<R>,
}

/// What the elements of C and D are, and the numbers in which products are added.
trait Sum: Send + Sync + 'static {
    type Number: Number;
    /// Whether an element is half a register.
    const HALF: bool = false;
    const FLOAT: bool = true;

    /// An element of C from its bits, and the bits of an element of D.
    fn from_bits(bits: u32) -> Self::Number;
    fn to_bits(number: Self::Number) -> u32;

    fn absolute(number: Self::Number) -> Self::Number {
        number
    }

    /// Adds an element of C to the sum of its products, or begins with it.
    fn start(c: Self::Number) -> Self::Number {
        c
    }

    fn finish(sum: Self::Number, _c: Self::Number, _saturate: bool) -> Self::Number {
        sum
    }
}

struct F32;
struct F16;
struct Bf16;
struct I32;

impl Sum for F32 {
    type Number = f32;

    #[inline(always)]
    fn from_bits(bits: u32) -> f32 {
        f32::from_bits(bits)
    }

    #[inline(always)]
    fn to_bits(number: f32) -> u32 {
        number.to_bits()
    }

    #[inline(always)]
    fn absolute(number: f32) -> f32 {
        number.abs()
    }
}

impl Sum for F16 {
    type Number = f32;
    const HALF: bool = true;

    #[inline(always)]
    fn from_bits(bits: u32) -> f32 {
        f16_to_f32(bits as u16)
    }

    #[inline(always)]
    fn to_bits(number: f32) -> u32 {
        f32_to_f16(number).into()
    }

    #[inline(always)]
    fn absolute(number: f32) -> f32 {
        number.abs()
    }
}

impl Sum for Bf16 {
    type Number = f32;
    const HALF: bool = true;

    #[inline(always)]
    fn from_bits(bits: u32) -> f32 {
        bf16_to_f32(bits as u16)
    }

    #[inline(always)]
    fn to_bits(number: f32) -> u32 {
        f32_to_bf16(number).into()
    }

    #[inline(always)]
    fn absolute(number: f32) -> f32 {
        number.abs()
    }
}

impl Sum for I32 {
    type Number = i32;
    const FLOAT: bool = false;

    #[inline(always)]
    fn from_bits(bits: u32) -> i32 {
        bits as i32
    }

    #[inline(always)]
    fn to_bits(number: i32) -> u32 {
        number as u32
    }

    // The products and their sum are far from wrapping; the sum with C may.
    #[inline(always)]
    fn start(_: i32) -> i32 {
        0
    }

    #[inline(always)]
    fn finish(sum: i32, c: i32, saturate: bool) -> i32 {
        if saturate { c.saturating_add(sum) } else { c.wrapping_add(sum) }
    }
}

/// The 16 rows of C or D.
type Tile<R> = [[<R as Sum>::Number; SIZE]; SIZE];

impl<R: Sum, const LANES: usize> Multiplication<R, LANES> {
    fn reading(&self, element: Element, operand: u8) -> Reading {
        let signed = self.modifiers.negate >> operand & 1 != 0;
        Reading { element, flush: false, signed, formats: [Fp8::E4m3, Fp8::E5m2] }
    }

    /// A or B, taken apart: for each k a row of 16 elements. `operand`: its number.
    #[inline(always)]
    fn unpack(
        &self,
        rows: &[[u32; LANES]],
        element: Element,
        operand: u8,
        to: &mut [[R::Number; SIZE]; DEEPEST],
    ) {
        let reading = self.reading(element, operand);
        let bits = [self.modifiers.negate, self.modifiers.negate_high];
        let negate = bits.map(|bits| R::FLOAT && bits >> operand & 1 != 0);
        for index in 0..self.layout.in_lane(self.shape) {
            let mut values = R::Number::elements(reading, rows, index);
            if negate[index & 1] {
                values = values.map(R::Number::negate);
            }
            let groups = self.layout.groups(self.shape);
            for (group, values) in values.as_chunks::<SIZE>().0.iter().take(groups).enumerate() {
                to[self.layout.depth_of(self.shape, group, index)] = *values;
            }
        }
    }

    /// GFX11: lanes from 16 on must hold what lanes 0 to 15 hold.
    #[inline(always)]
    fn check_copies(&self, rows: &[[u32; LANES]], first: usize, what: &str) -> Result<(), Box<Fault>> {
        if self.layout.is_later {
            return Ok(());
        }
        for row in &rows[first..first + self.operands.registers] {
            let mut different = 0;
            for group in row.as_chunks::<SIZE>().0 {
                for (a, b) in group.iter().zip(&row[..SIZE]) {
                    different |= a ^ b;
                }
            }
            if different != 0 {
                return Err(Fault::instruction(format!(
                    "lanes from 16 on do not repeat lanes 0 to 15 of {what}"
                )));
            }
        }
        Ok(())
    }

    /// Which half of a register an element of 16 bits is in, and the register.
    #[inline(always)]
    fn register_of(&self, index: usize) -> (usize, u32) {
        match (R::HALF, self.layout.is_later) {
            (true, true) => (index / 2, 16 * (index as u32 & 1)),
            (true, false) => (index, 4 * u32::from(self.modifiers.op_sel & 4)),
            (false, _) => (index, 0),
        }
    }

    #[inline(always)]
    fn load_c(&self, wave: &Wave) -> Result<Tile<R>, Box<Fault>> {
        let mut tile = [[R::Number::default(); SIZE]; SIZE];
        match self.operands.c {
            Source::Vector(c) => {
                let rows = &wave.vector.rows::<LANES>()[usize::from(c)..];
                for index in 0..self.layout.results_in_lane() {
                    let (register, shift) = self.register_of(index);
                    for (group, words) in rows[register].as_chunks::<SIZE>().0.iter().enumerate() {
                        let row = self.layout.row_of(group, index);
                        tile[row] = words.map(|word| R::from_bits(word >> shift));
                    }
                }
            }
            other => tile = [[R::Number::constant(wave, other)?; SIZE]; SIZE],
        }
        if R::FLOAT && self.modifiers.negate_high & 4 != 0 {
            tile = tile.map(|row| row.map(R::absolute));
        }
        if R::FLOAT && self.modifiers.negate & 4 != 0 {
            tile = tile.map(|row| row.map(R::Number::negate));
        }
        Ok(tile)
    }

    #[inline(always)]
    fn store_d(&self, wave: &mut Wave, tile: &Tile<R>) {
        let rows = &mut wave.vector.rows_mut::<LANES>()[self.operands.d..];
        for index in 0..self.layout.results_in_lane() {
            let (register, shift) = self.register_of(index);
            let keep = if R::HALF { !(0xffff << shift) } else { 0 };
            for (group, words) in rows[register].as_chunks_mut::<SIZE>().0.iter_mut().enumerate() {
                let bits = tile[self.layout.row_of(group, index)].map(R::to_bits);
                for (word, bits) in words.iter_mut().zip(bits) {
                    *word = *word & keep | bits << shift;
                }
            }
        }
    }
}

impl<R: Sum, const LANES: usize> Work for Multiplication<R, LANES> {
    #[inline(always)]
    fn run(&self, wave: &mut Wave, _: &mut Group<'_>) -> Result<(), Box<Fault>> {
        if wave.exec() != all::<LANES>() {
            return Err(Fault::instruction("a matrix product where some lanes are not active"));
        }
        let rows = wave.vector.rows::<LANES>();
        self.check_copies(rows, self.operands.a, "A")?;
        self.check_copies(rows, self.operands.b, "B")?;
        let zero = R::Number::default();
        let (mut a, mut b) = ([[zero; SIZE]; DEEPEST], [[zero; SIZE]; DEEPEST]);
        self.unpack(&rows[self.operands.a..], self.shape.a, 0, &mut a);
        self.unpack(&rows[self.operands.b..], self.shape.b, 1, &mut b);
        let c = self.load_c(wave)?;
        let mut tile = c.map(|row| row.map(R::start));
        let depth = self.shape.depth;
        for (first, rows) in tile.as_chunks_mut::<TOGETHER>().0.iter_mut().enumerate() {
            multiply(rows, &a[..depth], &b[..depth], std::array::from_fn(|i| TOGETHER * first + i));
        }
        for (sums, c) in tile.iter_mut().zip(&c) {
            for (sum, &c) in sums.iter_mut().zip(c) {
                *sum = R::finish(*sum, c, self.modifiers.clamp);
            }
        }
        self.store_d(wave, &tile);
        Ok(())
    }
}
