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

/// Makes a wave ready to run the first instruction.
pub fn start_wave(wave: &mut Wave, dispatch: &Dispatch<'_>, group: [u32; 3]) -> Result<(), Box<Fault>> {
    wave.scalar = [POISON; 128];
    wave.scalar[usize::from(sgpr::NULL)] = 0;
    wave.scc = false;
    wave.state = State::Running;
    wave.gpr_index_mode = 0;
    wave.mode = dispatch.descriptor.compute_pgm_rsrc1 >> 12 & 0xff;
    check_float_mode(wave.mode)?;
    wave.executed = 0;
    wave.step = 0;
    wave.pc = dispatch.entry - dispatch.program.base;
    wave.scratch_size = dispatch.descriptor.private_segment_fixed_size;
    wave.scratch.clear();
    wave.scratch.resize(wave.scratch_size as usize * wave.lanes, 0xff);
    let first = wave.id * wave.lanes;
    let items: usize = dispatch.workgroup_size.iter().map(|&n| n as usize).product();
    let active = (items - first).min(wave.lanes);
    wave.set_exec(if active == 64 { u64::MAX } else { (1 << active) - 1 });
    wave.set_scalar64(sgpr::VCC, 0);
    start_scalars(wave, dispatch, group)?;
    start_vectors(wave, dispatch, first, active);
    Ok(())
}

fn start_scalars(wave: &mut Wave, dispatch: &Dispatch<'_>, group: [u32; 3]) -> Result<(), Box<Fault>> {
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
    next = asked;
    if generation == Generation::Gfx12 {
        let ttmp = usize::from(sgpr::TTMP);
        wave.scalar[ttmp + 9] = group[0];
        wave.scalar[ttmp + 7] = group[1] & 0xffff | group[2] << 16;
        wave.scalar[ttmp + 8] = 0;
        return Ok(());
    }
    for (axis, &coordinate) in group.iter().enumerate() {
        if descriptor.compute_pgm_rsrc2 & 1 << (7 + axis) != 0 {
            wave.set_scalar(next, coordinate);
            next += 1;
        }
    }
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
    Ok(())
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

/// The coordinates of the work items.
fn start_vectors(wave: &mut Wave, dispatch: &Dispatch<'_>, first: usize, active: usize) {
    let allocated = dispatch.descriptor.vector_registers(dispatch.program.target, wave.lanes);
    let lanes = wave.lanes;
    wave.vector.words_mut()[..allocated * lanes].fill(POISON);
    let axes = (1 + (dispatch.descriptor.compute_pgm_rsrc2 >> 11 & 3) as usize).min(3);
    let packed = dispatch.program.target.packs_work_item_ids();
    let [width, height, _] = dispatch.workgroup_size;
    let first = first as u32;
    let mut id = [first % width, first / width % height, first / (width * height)];
    let words = wave.vector.words_mut();
    for lane in 0..lanes {
        if lane >= active {
            id = [0; 3];
        }
        if packed {
            words[lane] = (0..axes).map(|axis| id[axis] << (10 * axis)).sum();
        } else {
            (0..axes).for_each(|axis| words[axis * lanes + lane] = id[axis]);
        }
        id[0] += 1;
        if id[0] == width {
            (id[0], id[1]) = (0, id[1] + 1);
        }
        if id[1] == height {
            (id[1], id[2]) = (0, id[2] + 1);
        }
    }
}
