//! WMMA: products of matrices of 16 rows and columns (RDNA3 ISA and RDNA4 ISA, "Wave Matrix Multiply Accumulate").

use std::hint::black_box;
use std::marker::PhantomData;

use crate::isa::{Instruction, Modifiers, Source};

use crate::machine::execute::lanes::all;
use crate::machine::execute::operands::vector;
use crate::machine::fault::Fault;
use crate::machine::group::Group;
use crate::machine::native::{self, Work};
use crate::machine::numbers::{Fp8, bf16_to_f32, fp8_to_f32};
use crate::machine::step::Action;
use crate::machine::wave::Wave;

use super::element::{Element, each, number_of_half};
use super::number::{Multiply, Places, multiply};
use super::result::{Bf16, F16, F32, I32, Sum};
use super::shapes::{Product, Wmma};

/// Rows and columns of the result.
const SIZE: usize = 16;
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
        Product::F32 => multiplication::<F32, LANES, 16>(shape, layout, operands, modifiers),
        Product::F16 => multiplication::<F16, LANES, 16>(shape, layout, operands, modifiers),
        Product::Bf16 => multiplication::<Bf16, LANES, 16>(shape, layout, operands, modifiers),
        Product::I32 if shape.depth == 32 => {
            multiplication::<I32, LANES, 32>(shape, layout, operands, modifiers)
        }
        Product::I32 => multiplication::<I32, LANES, 16>(shape, layout, operands, modifiers),
    })
}

fn multiplication<R: Sum, const LANES: usize, const DEPTH: usize>(
    shape: &'static Wmma,
    layout: Layout,
    operands: Operands,
    modifiers: Modifiers,
) -> Action {
    let multiply = multiply();
    native::action(Multiplication::<R, LANES, DEPTH> {
        shape,
        layout,
        operands,
        modifiers,
        multiply,
        result: PhantomData,
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

struct Multiplication<R, const LANES: usize, const DEPTH: usize> {
    shape: &'static Wmma,
    layout: Layout,
    operands: Operands,
    modifiers: Modifiers,
    multiply: Multiply<f32, SIZE, TOGETHER>,
    result: PhantomData<R>,
}

/// For each k the elements of A of 16 rows, or those of B of 16 columns.
type Elements<const DEPTH: usize> = [[f32; SIZE]; DEPTH];
/// The bits of the 16 rows of C.
type Tile = [[u32; SIZE]; SIZE];

#[repr(align(64))]
struct Arrays<const DEPTH: usize> {
    a: Elements<DEPTH>,
    b: Elements<DEPTH>,
    c: Tile,
    sums: [[f32; SIZE]; SIZE],
}

impl<R: Sum, const LANES: usize, const DEPTH: usize> Multiplication<R, LANES, DEPTH> {
    /// A or B, taken apart. `operand`: its number.
    #[inline(always)]
    fn unpack(&self, rows: &[[u32; LANES]], element: Element, operand: u8, to: &mut Elements<DEPTH>) {
        match element {
            Element::F16 => self.spread::<2>(rows, operand, to, |word, part| {
                number_of_half(if part == 0 { word & 0xffff } else { word >> 16 })
            }),
            Element::Bf16 => {
                self.spread::<2>(rows, operand, to, |word, part| bf16_to_f32((word >> (16 * part)) as u16))
            }
            Element::Fp8 => self.spread::<4>(rows, operand, to, |word, part| {
                fp8_to_f32((word >> (8 * part)) as u8, Fp8::E4m3)
            }),
            Element::Bf8 => self.spread::<4>(rows, operand, to, |word, part| {
                fp8_to_f32((word >> (8 * part)) as u8, Fp8::E5m2)
            }),
            Element::Iu8 => self.integers::<4>(rows, operand, to),
            Element::Iu4 => self.integers::<8>(rows, operand, to),
            Element::F64 | Element::F32 | Element::Xf32 | Element::I8 => {}
        }
    }

    /// Integers of which `PARTS` are in a word. NEG says whether they have signs.
    #[inline(always)]
    fn integers<const PARTS: usize>(&self, rows: &[[u32; LANES]], operand: u8, to: &mut Elements<DEPTH>) {
        let bits = (32 / PARTS) as u32;
        if self.modifiers.negate >> operand & 1 != 0 {
            self.spread::<PARTS>(rows, operand, to, |word, part| {
                ((word << (32 - bits * (part + 1))) as i32 >> (32 - bits)) as f32
            });
        } else {
            self.spread::<PARTS>(rows, operand, to, |word, part| {
                ((word << (32 - bits * (part + 1)) >> (32 - bits)) as i32) as f32
            });
        }
    }

    /// `value`: an element of a word, by the number of its part.
    #[inline(always)]
    fn spread<const PARTS: usize>(
        &self,
        rows: &[[u32; LANES]],
        operand: u8,
        to: &mut Elements<DEPTH>,
        value: impl Fn(u32, u32) -> f32,
    ) {
        let bits = [self.modifiers.negate, self.modifiers.negate_high];
        let signs = bits.map(|bits| u32::from(R::FLOAT && bits >> operand & 1 != 0) << 31);
        let groups = self.layout.groups(self.shape);
        for (register, words) in rows[..self.operands.registers].iter().enumerate() {
            for (group, words) in words.as_chunks::<SIZE>().0.iter().take(groups).enumerate() {
                for part in 0..PARTS {
                    let k = self.layout.depth_of(self.shape, group, register * PARTS + part);
                    to[k % DEPTH] = each(words, |word| {
                        f32::from_bits(value(word, part as u32).to_bits() ^ signs[part & 1])
                    });
                }
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
            let (first, others) = row.split_at(SIZE);
            if others.chunks_exact(SIZE).any(|other| other != first) {
                return Err(Fault::instruction(format!(
                    "lanes from 16 on do not repeat lanes 0 to 15 of {what}"
                )));
            }
        }
        Ok(())
    }

    /// The register of an element of C or D, and its first bit there.
    #[inline(always)]
    fn place(&self, index: usize) -> (usize, u32) {
        match (R::BITS, self.layout.is_later) {
            (16, true) => (index / 2, 16 * (index as u32 & 1)),
            (16, false) => (index, 4 * u32::from(self.modifiers.op_sel & 4)),
            _ => (index, 0),
        }
    }

    #[inline(always)]
    fn load_c(&self, wave: &Wave, tile: &mut Tile) -> Result<(), Box<Fault>> {
        let sign = u32::from(R::FLOAT) << (R::BITS - 1);
        let keep = u32::MAX >> (32 - R::BITS) & !if self.modifiers.negate_high & 4 != 0 { sign } else { 0 };
        let invert = if self.modifiers.negate & 4 != 0 { sign } else { 0 };
        let constant = match self.operands.c {
            Source::Vector(c) => {
                let rows = &wave.vector.rows::<LANES>()[usize::from(c)..];
                for index in 0..self.layout.results_in_lane() {
                    let (register, shift) = self.place(index);
                    for (group, words) in rows[register].as_chunks::<SIZE>().0.iter().enumerate() {
                        let row = self.layout.row_of(group, index);
                        tile[row % SIZE] = each(words, |word| word >> shift & keep ^ invert);
                    }
                }
                return Ok(());
            }
            Source::Float(value) => R::constant(value as f32),
            other => wave.read32(other)?,
        };
        *tile = [[constant & keep ^ invert; SIZE]; SIZE];
        Ok(())
    }

    #[inline(always)]
    fn store_d(&self, wave: &mut Wave, sums: &[[f32; SIZE]; SIZE], c: &Tile) {
        let clamp = self.modifiers.clamp;
        let rows = &mut wave.vector.rows_mut::<LANES>()[self.operands.d..];
        for index in 0..self.layout.results_in_lane() {
            let (register, shift) = self.place(index);
            let keep = if R::BITS == 16 { !(0xffff << shift) } else { 0 };
            for (group, words) in rows[register].as_chunks_mut::<SIZE>().0.iter_mut().enumerate() {
                let row = self.layout.row_of(group, index) % SIZE;
                let (sums, c) = (sums[row], c[row]);
                let old = *words;
                for (lane, word) in words.iter_mut().enumerate() {
                    *word = old[lane] & keep | R::finish(sums[lane], c[lane], clamp) << shift;
                }
            }
        }
    }
}

impl<R: Sum, const LANES: usize, const DEPTH: usize> Work for Multiplication<R, LANES, DEPTH> {
    #[inline(always)]
    fn run(&self, wave: &mut Wave, _: &mut Group<'_>) -> Result<(), Box<Fault>> {
        if wave.exec() != all::<LANES>() {
            return Err(Fault::instruction("a matrix product where some lanes are not active"));
        }
        let rows = wave.vector.rows::<LANES>();
        self.check_copies(rows, self.operands.a, "A")?;
        self.check_copies(rows, self.operands.b, "B")?;
        // Unless they lie in memory the compiler splits these arrays into registers, and not along their rows.
        let mut arrays = Arrays {
            a: [[0.0; SIZE]; DEPTH],
            b: [[0.0; SIZE]; DEPTH],
            c: [[0; SIZE]; SIZE],
            sums: [[0.0; SIZE]; SIZE],
        };
        let Arrays { a, b, c, sums } = black_box(&mut arrays);
        self.unpack(&rows[self.operands.a..], self.shape.a, 0, a);
        self.unpack(&rows[self.operands.b..], self.shape.b, 1, b);
        self.load_c(wave, c)?;
        for (sums, c) in sums.iter_mut().zip(c.iter()) {
            *sums = each(c, R::start);
        }
        for (first, rows) in sums.as_chunks_mut::<TOGETHER>().0.iter_mut().enumerate() {
            let places = Places { first: TOGETHER * first, step: 1 };
            // SAFETY: the function was chosen for this processor.
            unsafe { (self.multiply)(rows, &*a, &*b, places) };
        }
        self.store_d(wave, sums, c);
        Ok(())
    }
}
