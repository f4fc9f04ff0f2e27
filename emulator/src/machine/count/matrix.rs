//! How long matrix instructions keep the matrix unit of a SIMD busy.
//!
//! The cycles are those of AMD's Matrix Instruction Calculator (ROCm/amd_matrix_instruction_calculator, "Execution
//! cycles"), which agree with the passes of four cycles in the CDNA ISA manuals ("MFMA Instructions"). They follow from
//! the shape:
//!
//! | | 32×32 | 16×16 | 4×4 |
//! |---|---|---|---|
//! | CDNA 1, 2; CDNA 3 with f32 or several blocks | 64 | 32 | 8 |
//! | CDNA 3, the others | 32 | 16 | |
//! | f64 | | 32 | 16 |
//!
//! RDNA: a WMMA takes 32 cycles on gfx11 (16 with i4), and on gfx12 16 with numbers of 16 bits, 8 with smaller ones. A
//! wave of 64 lanes does the same work in the same time there, for the matrix is as large.

use crate::isa::Generation;

/// Cycles of a matrix instruction; 0 of names that are none.
pub fn cycles(name: &str, generation: Generation) -> u32 {
    if name.starts_with("v_wmma") || name.starts_with("v_swmmac") {
        return rdna(name, generation);
    }
    let Some((_, shape)) =
        name.strip_prefix("v_mfma_").or(name.strip_prefix("v_smfmac_")).and_then(|kind| kind.split_once('_'))
    else {
        return 0;
    };
    if name.contains("f64") {
        return if shape.starts_with("4x4") { 16 } else { 32 };
    }
    let single = !shape.contains("b_") && !shape.ends_with("x1_f32") && !shape.ends_with("_f32");
    let fast = generation == Generation::Gfx940 && single;
    match shape.split('x').next() {
        Some("32") => 64 >> u32::from(fast),
        Some("16") => 32 >> u32::from(fast),
        _ => 8,
    }
}

fn rdna(name: &str, generation: Generation) -> u32 {
    let four_bits = name.ends_with("iu4");
    let small = four_bits || ["iu8", "fp8", "bf8"].iter().any(|end| name.ends_with(end));
    match generation {
        Generation::Gfx12 => 16 >> u32::from(small),
        _ => 32 >> u32::from(four_bits),
    }
}
