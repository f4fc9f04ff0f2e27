//! How long instructions take: when the next one of the same wave can begin, and when results are there.
//!
//! All numbers are shader clocks of a wave that runs alone on its SIMD. Where they come from is in docs/prediction.md.

use crate::isa::{Generation, Target};

use super::class::Class;
use super::matrix;

/// The constants of a generation.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// From an instruction of a wave to its next one.
    pub issue: u32,
    /// From a vector operation to one that reads its result.
    pub vector: u32,
    /// The same of transcendental operations.
    pub transcendental: u32,
    pub scalar: u32,
    /// From a vector operation to a scalar one that reads its mask or lane.
    pub vector_to_scalar: u32,
    /// From a vector operation to a memory instruction that uses one of its registers.
    pub vector_to_memory: u32,
    /// From a scalar operation to a branch that reads its SCC.
    pub scalar_to_branch: u32,
    /// A branch that is taken.
    pub branch: u32,
    /// Lanes that a SIMD serves at once.
    pub simd_lanes: u32,
    /// Whether matrix instructions leave the vector unit to others.
    pub matrix_alone: bool,
    /// Passes of a transcendental operation for one of another.
    pub transcendental_passes: u32,
    pub double_passes: u32,
    /// From an LDS instruction to its result, without conflicts.
    pub lds: u32,
    pub scalar_load: u32,
    /// Vector loads that hit the compute unit's own cache.
    pub load_near: u32,
    /// Those that hit the L2.
    pub load: u32,
    /// Scalar loads that miss the scalar cache.
    pub scalar_load_far: u32,
    pub barrier: u32,
}

#[rustfmt::skip]
const CDNA: Timing = Timing {
    issue: 4, vector: 4, transcendental: 16, scalar: 4, vector_to_scalar: 8, vector_to_memory: 4,
    scalar_to_branch: 4, branch: 16, simd_lanes: 16, matrix_alone: true,
    transcendental_passes: 4, double_passes: 1, lds: 64, scalar_load: 64, load_near: 120, load: 300,
    scalar_load_far: 200, barrier: 16,
};

#[rustfmt::skip]
const RDNA: Timing = Timing {
    issue: 1, vector: 5, transcendental: 10, scalar: 2, vector_to_scalar: 16, vector_to_memory: 17,
    scalar_to_branch: 10, branch: 8, simd_lanes: 32, matrix_alone: false,
    transcendental_passes: 4, double_passes: 16, lds: 32, scalar_load: 50, load_near: 90, load: 260,
    scalar_load_far: 170, barrier: 20,
};

impl Timing {
    pub fn of(target: Target) -> Timing {
        match target.generation {
            // Half the rate for f64.
            Generation::Gfx9 => Timing { double_passes: 2, ..CDNA },
            Generation::Gfx90a => CDNA,
            Generation::Gfx940 => Timing { load: 230, ..CDNA },
            Generation::Gfx10 => RDNA,
            Generation::Gfx11 => RDNA,
            Generation::Gfx12 => Timing { double_passes: 32, scalar: 9, ..RDNA },
        }
    }

    /// Clocks for which an instruction keeps the unit that does it.
    pub fn busy(&self, class: Class, name: &str, lanes: u32, generation: Generation) -> u32 {
        let passes = (lanes / self.simd_lanes).max(1);
        match class {
            Class::Matrix => matrix::cycles(name, generation).max(passes),
            // One lane.
            Class::Transcendental if name.starts_with("v_s_") => 1,
            Class::Transcendental | Class::VectorMultiply => passes * self.transcendental_passes,
            Class::Vector64 => passes * self.double_passes,
            Class::VectorWide => passes * 2,
            _ if class.is_vector_alu() => passes,
            _ => 1,
        }
    }

    /// Clocks until the result of an operation on registers is there.
    pub fn latency(&self, class: Class, busy: u32) -> u32 {
        match class {
            Class::Transcendental => self.transcendental.max(busy),
            Class::Matrix => busy + self.vector,
            _ if class.is_vector_alu() => self.vector + busy - 1,
            Class::ScalarAlu => self.scalar,
            _ => 0,
        }
    }
}
