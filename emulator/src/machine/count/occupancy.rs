//! How many waves of a kernel a SIMD holds at a time.
//!
//! Registers are handed out in granules (LLVM, "User Guide for AMDGPU Backend", GRANULATED_WORKITEM_VGPR_COUNT, and
//! LLVM's AMDGPUBaseInfo for granules and totals):
//!
//! | | registers of a lane | granule | waves of a SIMD | SIMDs | LDS |
//! |---|---|---|---|---|---|
//! | gfx900 to gfx908 | 256 (+ 256 accumulation) | 4 | 10 | 4 | 64 KiB |
//! | gfx90a, gfx942 | 512 | 8 | 8 | 4 | 64 KiB (gfx950 160) |
//! | gfx1030, gfx1102, gfx1103, gfx1150 | 1024 of 32 lanes | 16 | 16 | 4 | 128 KiB |
//! | gfx1100, gfx1101, gfx1151, gfx1200, gfx1201 | 1536 of 32 lanes | 24 | 16 | 4 | 128 KiB |
//!
//! GFX10 and later: the unit is the workgroup processor, two compute units that share their LDS.

use serde::{Deserialize, Serialize};

use crate::isa::{Generation, Target};

/// What bounds the waves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    #[default]
    Waves,
    Registers,
    Lds,
    /// The workgroups that a compute unit can hold.
    Workgroups,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Occupancy {
    pub waves_per_simd: u32,
    /// Workgroups of a compute unit; from GFX10 on of a workgroup processor.
    pub workgroups_per_unit: u32,
    pub limit: Limit,
}

/// What a kernel needs.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// Of a lane.
    pub vector_registers: u32,
    pub lanes: u32,
    pub waves_of_workgroup: u32,
    pub lds: u32,
}

/// Of one SIMD, and LDS of a unit of four.
struct Unit {
    registers: u32,
    granule: u32,
    waves: u32,
    lds: u32,
    lds_granule: u32,
}

const SIMDS: u32 = 4;

pub fn occupancy(need: &Need, target: Target) -> Occupancy {
    let unit = unit(target, need.lanes);
    let registers = need.vector_registers.max(1).next_multiple_of(unit.granule);
    let by_registers = (unit.registers / registers).max(1);
    let of_workgroup = need.waves_of_workgroup.max(1);
    let groups = |waves: u32| (waves * SIMDS / of_workgroup).max(1);
    let lds = need.lds.next_multiple_of(unit.lds_granule);
    let by_lds = unit.lds.checked_div(lds).map_or(u32::MAX, |groups| groups.max(1));
    // A workgroup of one wave has no barrier to keep, so it is not bound by this (RDNA and CDNA ISA manuals).
    let by_workgroups = match (of_workgroup, target.generation <= Generation::Gfx940) {
        (1, _) => u32::MAX,
        (_, true) => 16,
        (_, false) => 32,
    };
    let rows = [
        (groups(unit.waves), Limit::Waves),
        (by_workgroups, Limit::Workgroups),
        (groups(by_registers), Limit::Registers),
        (by_lds, Limit::Lds),
    ];
    let (workgroups, limit) = rows.into_iter().min_by_key(|row| row.0).unwrap_or((1, Limit::Waves));
    let waves = (workgroups * of_workgroup).div_ceil(SIMDS).clamp(1, unit.waves);
    Occupancy { waves_per_simd: waves, workgroups_per_unit: workgroups, limit }
}

fn unit(target: Target, lanes: u32) -> Unit {
    let (registers, granule, waves) = match target.generation {
        Generation::Gfx9 => (256, 4, 10),
        Generation::Gfx90a | Generation::Gfx940 => (512, 8, 8),
        Generation::Gfx10 => (1024, 16, 16),
        _ if ["gfx1102", "gfx1103", "gfx1150"].contains(&target.name) => (1024, 16, 16),
        _ => (1536, 24, 16),
    };
    let (lds, lds_granule) = match target.generation {
        _ if target.name == "gfx950" => (160 << 10, 1280),
        Generation::Gfx9 | Generation::Gfx90a | Generation::Gfx940 => (64 << 10, 512),
        _ => (128 << 10, 512),
    };
    // A lane of a wave of 64 lanes takes two places of a register.
    let halved = u32::from(lanes == 64 && target.generation >= Generation::Gfx10);
    Unit { registers: registers >> halved, granule: granule >> halved, waves, lds, lds_granule }
}
