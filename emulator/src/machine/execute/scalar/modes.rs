//! Modes, hardware registers, messages, and instructions that only tell the hardware when to wait.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::isa::{Instruction, Source};
use crate::machine::fault::Fault;
use crate::machine::step::{Action, Setting};

/// Those that change nothing that can be seen here.
const NOTHING: [&str; 42] = [
    "s_nop",
    "s_delay_alu",
    "s_clause",
    "s_sleep",
    "s_sleep_var",
    "s_code_end",
    "s_sendmsg",
    "s_sendmsghalt",
    "s_set_inst_prefetch_distance",
    "s_inst_prefetch",
    "s_icache_inv",
    "s_ttracedata",
    "s_ttracedata_imm",
    "s_setprio",
    "s_setkill",
    "s_sethalt",
    "s_incperflevel",
    "s_decperflevel",
    "s_version",
    "s_barrier_signal",
    "s_barrier_init",
    "s_barrier_leave",
    "s_waitcnt",
    "s_waitcnt_depctr",
    "s_waitcnt_vscnt",
    "s_waitcnt_vmcnt",
    "s_waitcnt_expcnt",
    "s_waitcnt_lgkmcnt",
    "s_wait_idle",
    "s_wait_event",
    "s_wait_alu",
    "s_wait_loadcnt",
    "s_wait_storecnt",
    "s_wait_samplecnt",
    "s_wait_bvhcnt",
    "s_wait_expcnt",
    "s_wait_dscnt",
    "s_wait_kmcnt",
    "s_wait_loadcnt_dscnt",
    "s_wait_storecnt_dscnt",
    "s_set_vgpr_msb",
    "s_endpgm_ordered_ps_done",
];

pub fn does_nothing(name: &str) -> bool {
    NOTHING.contains(&name)
}

/// Numbers of hardware registers (LLVM, "User Guide for AMDGPU Backend", hwreg).
const MODE: u32 = 1;
const CYCLES: u32 = 29;

/// `None` for other instructions.
pub fn action(instruction: &Instruction, _: Setting) -> Result<Option<Action>, Box<Fault>> {
    let name = instruction.name;
    if does_nothing(name) {
        return Ok(Some(Box::new(|_, _| Ok(()))));
    }
    let immediate = instruction.modifiers.immediate as u32;
    let field =
        Field { register: immediate & 63, offset: immediate >> 6 & 31, width: (immediate >> 11 & 31) + 1 };
    let (source, destination) = (instruction.sources[0].source, instruction.destinations[0].source);
    Ok(Some(match name {
        "s_round_mode" | "s_denorm_mode" => {
            let shift = if name == "s_round_mode" { 0 } else { 4 };
            Box::new(move |wave, _| {
                wave.mode = wave.mode & !(15 << shift) | (immediate & 15) << shift;
                Ok(())
            })
        }
        "s_setreg_b32" | "s_setreg_imm32_b32" => Box::new(move |wave, _| {
            let value = wave.read32(source)?;
            if field.register == MODE {
                wave.mode = field.put(wave.mode, value);
            }
            Ok(())
        }),
        "s_getreg_b32" => Box::new(move |wave, _| {
            let value = match field.register {
                MODE => field.get(wave.mode),
                CYCLES => now() as u32 & 0xf_ffff,
                _ => 0,
            };
            set(wave, destination, u64::from(value), false);
            Ok(())
        }),
        "s_sendmsg_rtn_b32" => Box::new(move |wave, _| {
            set(wave, destination, now(), false);
            Ok(())
        }),
        "s_sendmsg_rtn_b64" => Box::new(move |wave, _| {
            set(wave, destination, now(), true);
            Ok(())
        }),
        _ => return Ok(None),
    }))
}

/// Some bits of a hardware register.
#[derive(Clone, Copy)]
struct Field {
    register: u32,
    offset: u32,
    width: u32,
}

impl Field {
    fn mask(self) -> u32 {
        ((1u64 << self.width) - 1) as u32
    }

    fn get(self, register: u32) -> u32 {
        register >> self.offset & self.mask()
    }

    fn put(self, register: u32, value: u32) -> u32 {
        let mask = self.mask() << self.offset;
        register & !mask | (value << self.offset) & mask
    }
}

fn set(wave: &mut crate::machine::wave::Wave, destination: Source, value: u64, wide: bool) {
    match destination {
        Source::Scalar(register) if wide => wave.set_scalar64(register, value),
        Source::Scalar(register) => wave.set_scalar(register, value as u32),
        _ => {}
    }
}

/// A clock of 100 MHz, as the constant-rate counter of the hardware.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| (time.as_nanos() / 10) as u64)
}
