//! The twin of a wave.

use crate::isa::{Generation, Instruction, Source, sgpr};
use crate::machine::check::Launch;
use crate::machine::check::operands::Span;
use crate::machine::wave::{Wave, lanes_of};

/// What a register of a wave holds that nobody wrote.
const POISON: u32 = 0xffff_ffff;

/// What makes a byte another one.
const FLIP: u32 = 0xa5;

/// A wave with other values in what nobody wrote.
pub struct Twin {
    pub wave: Wave,
    noise: Noise,
}

impl Twin {
    pub fn new(lanes: usize) -> Twin {
        Twin { wave: Wave::new(0, lanes), noise: Noise(0x9e37_79b9_7f4a_7c15) }
    }

    /// A copy of a wave that has run nothing yet.
    pub fn start(&mut self, wave: &Wave, launch: &Launch<'_>) {
        let (twin, noise) = (&mut self.wave, &mut self.noise);
        (twin.id, twin.scc, twin.state) = (wave.id, wave.scc, wave.state);
        (twin.gpr_index_mode, twin.mode) = (wave.gpr_index_mode, wave.mode);
        twin.scalar = wave.scalar;
        let given = given_scalars(launch);
        for register in (given..usize::from(sgpr::EXEC)).filter(|register| !is_given(*register, launch)) {
            twin.scalar[register] = noise.next();
        }
        let allocated = launch.descriptor.vector_registers(launch.program.target, wave.lanes);
        for register in 0..allocated {
            for (to, from) in twin.vector.row_mut(register).iter_mut().zip(wave.vector.row(register)) {
                *to = if *from == POISON { noise.next() } else { *from };
            }
        }
        twin.scratch_size = wave.scratch_size;
        twin.scratch.resize(wave.scratch.len(), 0);
        fill(&mut twin.scratch);
    }

    /// Takes an instruction's result from the wave, but for bytes that nobody wrote: lanes and their bytes.
    pub fn take(&mut self, wave: &Wave, instruction: &Instruction, undefined: &[(usize, u32)]) {
        let part = part(instruction.name);
        match instruction.destinations[0].source {
            Source::Vector(first) => {
                let (first, exec) = (usize::from(first), wave.exec());
                for register in first..first + usize::from(instruction.destinations[0].registers) {
                    for lane in lanes_of(exec) {
                        let old = self.wave.vector.get(register, lane);
                        let new = wave.vector.get(register, lane);
                        self.wave.vector.set(register, lane, old & !part | new & part);
                    }
                }
                for &(lane, byte) in undefined {
                    let register = first + byte as usize / 4;
                    let flip = FLIP << (8 * (byte % 4) + if part == 0xffff_0000 { 16 } else { 0 });
                    let value = self.wave.vector.get(register, lane);
                    self.wave.vector.set(register, lane, value ^ flip);
                }
            }
            _ => self.take_scalars(wave, instruction, undefined),
        }
    }

    fn take_scalars(&mut self, wave: &Wave, instruction: &Instruction, undefined: &[(usize, u32)]) {
        let Some(Span::Scalar { first, count }) = Span::of(instruction.destinations[0]) else { return };
        let end = (first + count).min(128);
        self.wave.scalar[first..end].copy_from_slice(&wave.scalar[first..end]);
        for &(_, byte) in undefined {
            if let Some(register) = self.wave.scalar[..end].get_mut(first + byte as usize / 4) {
                *register ^= FLIP << (8 * (byte % 4));
            }
        }
    }
}

/// The bits of a register that a load writes.
fn part(name: &str) -> u32 {
    if name.contains("_load_d16_hi_") {
        0xffff_0000
    } else if name.contains("_load_d16_") && !name.contains("_format_") {
        0xffff
    } else {
        u32::MAX
    }
}

/// Scalar registers that hold something when a wave begins: so many of the first ones (LLVM, "User Guide for AMDGPU
/// Backend", "Initial Kernel Execution State").
fn given_scalars(launch: &Launch<'_>) -> usize {
    let setup = launch.descriptor.compute_pgm_rsrc2;
    let user = setup >> 1 & 31;
    // Workgroup numbers in three directions, a word about the workgroup, where scratch begins.
    let system = (setup >> 7 & 15).count_ones() + (setup & 1);
    if launch.program.target.generation == Generation::Gfx12 {
        user as usize
    } else {
        (user + system) as usize
    }
}

fn is_given(register: usize, launch: &Launch<'_>) -> bool {
    let (vcc, ttmp, null) = (usize::from(sgpr::VCC), usize::from(sgpr::TTMP), usize::from(sgpr::NULL));
    let workgroup =
        launch.program.target.generation == Generation::Gfx12 && (ttmp + 7..=ttmp + 9).contains(&register);
    register == vcc || register == vcc + 1 || register == null || workgroup
}

/// Fills memory with other bytes than a wave's.
pub fn fill(bytes: &mut [u8]) {
    let mut noise = Noise(0x2545_f491_4f6c_dd1d);
    for word in bytes.chunks_mut(4) {
        let value = noise.next().to_le_bytes();
        word.copy_from_slice(&value[..word.len()]);
    }
}

/// Words that look random. As floats they are small positive numbers.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32 & 0x0fff_7fff | 0x3000_3000
    }
}
