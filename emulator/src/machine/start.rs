//! What registers hold when a wave begins (LLVM, "User Guide for AMDGPU Backend", "Initial Kernel Execution State").

use crate::isa::{Generation, sgpr};

use super::execute::check_float_mode;
use super::fault::Fault;
use super::launch::Dispatch;
use super::wave::{PRIVATE_APERTURE, State, Wave};

/// What a register holds that nobody wrote: as a float not a number.
const POISON: u32 = 0xffff_ffff;

/// Bits of KERNEL_CODE_PROPERTIES, in the order of the registers they ask for, with how many those are.
const USER_SGPRS: [(u16, u8); 7] = [(1, 4), (2, 2), (4, 2), (8, 2), (16, 2), (32, 2), (64, 1)];

/// What the waves of a launch begin with in all workgroups.
pub struct Start {
    scalar: [u32; 128],
    /// Where the workgroup's coordinates go.
    coordinates: u8,
    /// Which lanes take part, by wave.
    exec: Vec<u64>,
    /// The coordinates of the work items: so many words of the first rows, wave by wave.
    items: Vec<u32>,
    words: usize,
    /// Words of the rows that are allocated.
    allocated: usize,
    mode: u32,
    pc: u64,
}

impl Start {
    /// Of these waves; the scalar registers of the first are used for it.
    pub fn new(waves: &mut [Wave], dispatch: &Dispatch<'_>) -> Result<Start, Box<Fault>> {
        let mode = dispatch.descriptor.compute_pgm_rsrc1 >> 12 & 0xff;
        check_float_mode(mode)?;
        let (lanes, items) = (dispatch.lanes(), dispatch.items());
        for wave in waves.iter_mut() {
            wave.scratch_size = dispatch.descriptor.private_segment_fixed_size;
        }
        let (mut scalar, mut coordinates) = ([POISON; 128], 0);
        if let Some(wave) = waves.first_mut() {
            wave.scalar = [POISON; 128];
            wave.scalar[usize::from(sgpr::NULL)] = 0;
            wave.set_scalar64(sgpr::VCC, 0);
            coordinates = start_scalars(wave, dispatch)?;
            scalar = wave.scalar;
        }
        let exec = |wave: usize| match (items - wave * lanes).min(lanes) {
            64 => u64::MAX,
            active => (1 << active) - 1,
        };
        let (words, ids) = work_items(dispatch, lanes, waves.len());
        let allocated = dispatch.descriptor.vector_registers(dispatch.program.target, lanes);
        Ok(Start {
            scalar,
            coordinates,
            exec: (0..waves.len()).map(exec).collect(),
            items: ids,
            words,
            allocated: allocated * lanes,
            mode,
            pc: dispatch.entry - dispatch.program.base,
        })
    }

    /// Makes a wave ready to run the first instruction.
    pub fn apply(&self, wave: &mut Wave, dispatch: &Dispatch<'_>, group: [u32; 3]) {
        wave.scalar = self.scalar;
        wave.set_exec(self.exec[wave.id]);
        wave.scc = false;
        wave.state = State::Running;
        wave.gpr_index_mode = 0;
        wave.mode = self.mode;
        wave.executed = 0;
        wave.step = 0;
        wave.resume = 0;
        wave.pc = self.pc;
        wave.scratch.clear();
        wave.scratch.resize(wave.scratch_size as usize * wave.lanes, 0xff);
        let (first, others) = wave.vector.words_mut().split_at_mut(self.words);
        first.copy_from_slice(&self.items[wave.id * self.words..][..self.words]);
        others[..self.allocated.saturating_sub(self.words)].fill(POISON);
        place_group(wave, dispatch, group, self.coordinates);
    }
}

/// The workgroup's coordinates.
fn place_group(wave: &mut Wave, dispatch: &Dispatch<'_>, group: [u32; 3], first: u8) {
    if dispatch.program.target.generation == Generation::Gfx12 {
        let ttmp = usize::from(sgpr::TTMP);
        wave.scalar[ttmp + 9] = group[0];
        wave.scalar[ttmp + 7] = group[1] & 0xffff | group[2] << 16;
        wave.scalar[ttmp + 8] = 0;
        return;
    }
    let mut next = first;
    for (axis, &coordinate) in group.iter().enumerate() {
        if dispatch.descriptor.compute_pgm_rsrc2 & 1 << (7 + axis) != 0 {
            wave.set_scalar(next, coordinate);
            next += 1;
        }
    }
}

/// Scalar registers but the workgroup's coordinates; the first register of those.
fn start_scalars(wave: &mut Wave, dispatch: &Dispatch<'_>) -> Result<u8, Box<Fault>> {
    let (descriptor, generation) = (dispatch.descriptor, dispatch.program.target.generation);
    let mut next = 0;
    for (bit, count) in USER_SGPRS {
        if descriptor.kernel_code_properties & bit == 0 {
            continue;
        }
        match bit {
            1 => {
                // A buffer resource by which scratch is recognised.
                wave.set_scalar64(next, u64::from(PRIVATE_APERTURE) << 32);
                wave.set_scalar64(next + 2, u64::from(u32::MAX));
            }
            2 => wave.set_scalar64(next, dispatch.packet),
            8 => wave.set_scalar64(next, dispatch.kernarg),
            64 => wave.set_scalar(next, wave.scratch_size),
            _ => wave.set_scalar64(next, 0),
        }
        next += count;
    }
    next = preload_arguments(wave, dispatch, next)?;
    let asked = (descriptor.compute_pgm_rsrc2 >> 1 & 31) as u8;
    if asked != 0 && next > asked {
        return Err(Fault::instruction(format!(
            "the kernel's descriptor has {asked} user SGPRs and needs {next}"
        )));
    }
    let coordinates = asked;
    if generation == Generation::Gfx12 {
        return Ok(coordinates);
    }
    next = coordinates + (descriptor.compute_pgm_rsrc2 >> 7 & 7).count_ones() as u8;
    if descriptor.compute_pgm_rsrc2 & 1 << 10 != 0 {
        wave.set_scalar(next, 0);
        next += 1;
    }
    if descriptor.compute_pgm_rsrc2 & 1 != 0
        && generation <= Generation::Gfx10
        && generation != Generation::Gfx940
    {
        // Where the wave's scratch begins, behind the base of all.
        wave.set_scalar(next, 0);
    }
    Ok(coordinates)
}

/// Arguments that the hardware loads into registers (gfx90a, gfx942); the next free register.
fn preload_arguments(wave: &mut Wave, dispatch: &Dispatch<'_>, first: u8) -> Result<u8, Box<Fault>> {
    let (length, offset) =
        (dispatch.descriptor.kernarg_preload & 0x7f, u64::from(dispatch.descriptor.kernarg_preload >> 7));
    for i in 0..length as u8 {
        let address = dispatch.kernarg + 4 * (offset + u64::from(i));
        let from = wave.ranges.host(dispatch.memory, address, 4)?;
        // SAFETY: four bytes of an allocation lie there, which the runtime keeps during a launch.
        let value = unsafe { from.cast::<u32>().read_unaligned() };
        wave.set_scalar(first + i, value);
    }
    Ok(first + length as u8)
}

/// How many words each wave has, and the coordinates of its work items, row by row.
fn work_items(dispatch: &Dispatch<'_>, lanes: usize, waves: usize) -> (usize, Vec<u32>) {
    let axes = (1 + (dispatch.descriptor.compute_pgm_rsrc2 >> 11 & 3) as usize).min(3);
    let packed = dispatch.program.target.packs_work_item_ids();
    let [width, height, _] = dispatch.workgroup_size;
    let words = if packed { lanes } else { axes * lanes };
    let mut items = vec![0; waves * words];
    let (mut id, mut left) = ([0; 3], dispatch.items());
    for rows in items.chunks_exact_mut(words) {
        for lane in 0..lanes.min(left) {
            if packed {
                rows[lane] = id[0] | id[1] << 10 | id[2] << 20;
            } else {
                (0..axes).for_each(|axis| rows[axis * lanes + lane] = id[axis]);
            }
            id[0] += 1;
            if id[0] == width {
                (id[0], id[1]) = (0, id[1] + 1);
                if id[1] == height {
                    (id[1], id[2]) = (0, id[2] + 1);
                }
            }
        }
        left = left.saturating_sub(lanes);
    }
    if packed && axes < 3 {
        // Coordinates that the kernel does not ask for are not there.
        let asked = (1 << (10 * axes)) - 1;
        items.iter_mut().for_each(|word| *word &= asked);
    }
    (words, items)
}
