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
        Product::I32 => native::action(Multiplication::<i32, LANES> {
            shape,
            layout,
            operands,
            modifiers,
            number: PhantomData,
        }),
        _ => native::action(Multiplication::<f32, LANES> {
            shape,
            layout,
            operands,
            modifiers,
            number: PhantomData,
        }),
    })
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

struct Multiplication<T, const LANES: usize> {
    shape: &'static Wmma,
    layout: Layout,
    operands: Operands,
    modifiers: Modifiers,
    number: PhantomData<T>,
}

/// What differs between sums of floats and of integers.
trait Sum: Number {
    /// An element of C from its register, and the bits of an element of D.
    fn from_bits(bits: u32, product: Product) -> Self;
    fn to_bits(self, product: Product) -> u32;
    fn absolute(self) -> Self;
    /// Adds all products; `saturate` keeps integers from wrapping.
    fn sum(tile: &mut [[Self; SIZE]; SIZE], a: &[[Self; SIZE]], b: &[[Self; SIZE]], saturate: bool);
}

impl Sum for f32 {
    #[inline(always)]
    fn from_bits(bits: u32, product: Product) -> f32 {
        match product {
            Product::F16 => f16_to_f32(bits as u16),
            Product::Bf16 => bf16_to_f32(bits as u16),
            _ => f32::from_bits(bits),
        }
    }

    #[inline(always)]
    fn to_bits(self, product: Product) -> u32 {
        match product {
            Product::F16 => f32_to_f16(self).into(),
            Product::Bf16 => f32_to_bf16(self).into(),
            _ => f32::to_bits(self),
        }
    }

    #[inline(always)]
    fn absolute(self) -> f32 {
        self.abs()
    }

    #[inline(always)]
    fn sum(tile: &mut [[f32; SIZE]; SIZE], a: &[[f32; SIZE]], b: &[[f32; SIZE]], _: bool) {
        for (first, rows) in tile.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            multiply(rows, a, b, std::array::from_fn(|i| 4 * first + i));
        }
    }
}

impl Sum for i32 {
    #[inline(always)]
    fn from_bits(bits: u32, _: Product) -> i32 {
        bits as i32
    }

    #[inline(always)]
    fn to_bits(self, _: Product) -> u32 {
        self as u32
    }

    #[inline(always)]
    fn absolute(self) -> i32 {
        self
    }

    #[inline(always)]
    fn sum(tile: &mut [[i32; SIZE]; SIZE], a: &[[i32; SIZE]], b: &[[i32; SIZE]], saturate: bool) {
        // The products of 8 bits and their sum are far from wrapping; the sum with C may.
        let mut products = [[0; SIZE]; SIZE];
        for (first, rows) in products.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            multiply(rows, a, b, std::array::from_fn(|i| 4 * first + i));
        }
        for (sum, product) in tile.as_flattened_mut().iter_mut().zip(products.as_flattened()) {
            *sum = if saturate { sum.saturating_add(*product) } else { sum.wrapping_add(*product) };
        }
    }
}

impl<T: Sum, const LANES: usize> Multiplication<T, LANES> {
    fn reading(&self, element: Element, operand: u8) -> Reading {
        let signed = self.modifiers.negate >> operand & 1 != 0;
        Reading { element, flush: false, signed, formats: [Fp8::E4m3, Fp8::E5m2] }
    }

    /// A or B, taken apart: for each k a row of 16 elements. `operand`: its number.
    #[inline(always)]
    fn unpack(&self, rows: &[[u32; LANES]], element: Element, operand: u8, to: &mut [[T; SIZE]; DEEPEST]) {
        let reading = self.reading(element, operand);
        let is_float = self.shape.result != Product::I32;
        let bits = [self.modifiers.negate, self.modifiers.negate_high];
        let negate = bits.map(|bits| is_float && bits >> operand & 1 != 0);
        for index in 0..self.layout.in_lane(self.shape) {
            let mut values = T::elements(reading, rows, index);
            if negate[index & 1] {
                values = values.map(T::negate);
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
        if self.layout.is_packed(self.shape.result) {
            (index / 2, 16 * (index as u32 & 1))
        } else if matches!(self.shape.result, Product::F16 | Product::Bf16) {
            (index, 4 * u32::from(self.modifiers.op_sel & 4))
        } else {
            (index, 0)
        }
    }

    #[inline(always)]
    fn load_sums(&self, wave: &Wave) -> Result<[[T; SIZE]; SIZE], Box<Fault>> {
        let product = self.shape.result;
        let mut tile = [[T::default(); SIZE]; SIZE];
        match self.operands.c {
            Source::Vector(c) => {
                let rows = &wave.vector.rows::<LANES>()[usize::from(c)..];
                for index in 0..self.layout.results_in_lane() {
                    let (register, shift) = self.register_of(index);
                    for (group, words) in rows[register].as_chunks::<SIZE>().0.iter().enumerate() {
                        let row = self.layout.row_of(group, index);
                        tile[row] = words.map(|word| T::from_bits(word >> shift, product));
                    }
                }
            }
            other => tile = [[T::constant(wave, other)?; SIZE]; SIZE],
        }
        if product != Product::I32 {
            if self.modifiers.negate_high & 4 != 0 {
                tile = tile.map(|row| row.map(T::absolute));
            }
            if self.modifiers.negate & 4 != 0 {
                tile = tile.map(|row| row.map(T::negate));
            }
        }
        Ok(tile)
    }

    #[inline(always)]
    fn store_sums(&self, wave: &mut Wave, tile: &[[T; SIZE]; SIZE]) {
        let product = self.shape.result;
        let half = matches!(product, Product::F16 | Product::Bf16);
        let rows = &mut wave.vector.rows_mut::<LANES>()[self.operands.d..];
        for index in 0..self.layout.results_in_lane() {
            let (register, shift) = self.register_of(index);
            let keep = if half { !(0xffff << shift) } else { 0 };
            for (group, words) in rows[register].as_chunks_mut::<SIZE>().0.iter_mut().enumerate() {
                let row = &tile[self.layout.row_of(group, index)];
                for (word, number) in words.iter_mut().zip(row) {
                    *word = *word & keep | number.to_bits(product) << shift;
                }
            }
        }
    }
}

impl<T: Sum, const LANES: usize> Work for Multiplication<T, LANES> {
    #[inline(always)]
    fn run(&self, wave: &mut Wave, _: &mut Group<'_>) -> Result<(), Box<Fault>> {
        if wave.exec() != all::<LANES>() {
            return Err(Fault::instruction("a matrix product where some lanes are not active"));
        }
        let rows = wave.vector.rows::<LANES>();
        self.check_copies(rows, self.operands.a, "A")?;
        self.check_copies(rows, self.operands.b, "B")?;
        let (mut a, mut b) = ([[T::default(); SIZE]; DEEPEST], [[T::default(); SIZE]; DEEPEST]);
        self.unpack(&rows[self.operands.a..], self.shape.a, 0, &mut a);
        self.unpack(&rows[self.operands.b..], self.shape.b, 1, &mut b);
        let mut tile = self.load_sums(wave)?;
        let depth = self.shape.depth;
        T::sum(&mut tile, &a[..depth], &b[..depth], self.modifiers.clamp);
        self.store_sums(wave, &tile);
        Ok(())
    }
}
