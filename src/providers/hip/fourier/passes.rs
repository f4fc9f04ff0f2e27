//! The launches of transforms: one, two where lines are long, one for each stage where they are longer still, and twice as
//! many where a length is not smooth.

use std::ffi::CStr;
use std::mem::offset_of;

use bytemuck::Zeroable;

use crate::ops::OpError;
use crate::providers::hip::PlanBuilder;
use crate::providers::hip::launch::{GROUP, KernelName, Operand};
use crate::providers::hip::params::divider;
use crate::tensor::ElementType;

use super::params::{FftParams, flags};
use super::plans::{FourierPlan, Pass, Smooth, Way, points};

/// Lines [outer, inner], as they lie in a tensor.
#[derive(Clone, Copy)]
pub(super) struct Side {
    pub(super) operand: Operand,
    pub(super) ty: ElementType,
    pub(super) is_complex: bool,
    /// Elements (real or complex) from one to the next.
    pub(super) outer: usize,
    pub(super) inner: usize,
    pub(super) step: usize,
    /// Points that are there, or wanted.
    pub(super) length: usize,
}

/// What is to be computed.
pub(super) struct Transform {
    pub(super) length: usize,
    pub(super) outers: usize,
    pub(super) inners: usize,
    pub(super) from: Side,
    pub(super) to: Side,
    /// Real numbers by which points are multiplied, of the input's type.
    pub(super) window: Option<(Operand, usize)>,
    /// Whether the input is half of the spectrum of a real signal.
    pub(super) mirrored: bool,
    pub(super) scale: f64,
}

/// Tables that points and results are multiplied by; 0: none.
#[derive(Clone, Copy, Default)]
struct Factors {
    before: u64,
    after: u64,
}

/// Appends the launches.
pub(super) fn append(
    builder: &mut PlanBuilder<'_>,
    transform: &Transform,
    plan: &FourierPlan,
    double: bool,
) -> Result<(), OpError> {
    let Transform { outers, inners, .. } = *transform;
    match &plan.way {
        Way::Smooth(smooth) => passes(builder, transform, smooth, Factors::default(), double),
        Way::Chirp { length, there, back, chirp, spectrum } => {
            let between = Side {
                operand: builder.scratch(outers * inners * length * number(double)),
                ty: if double { ElementType::F64 } else { ElementType::F32 },
                is_complex: true,
                outer: inners * length,
                inner: *length,
                step: 1,
                length: *length,
            };
            let from = Side { length: transform.from.length.min(transform.length), ..transform.from };
            let first = Transform { length: *length, to: between, scale: 1.0, from, ..*transform };
            let factors = Factors { before: *chirp, after: *spectrum };
            let whole = transform.length;
            passes_of(builder, &first, there, factors, double, whole)?;
            let second = Transform {
                length: *length,
                from: between,
                window: None,
                mirrored: false,
                scale: transform.scale / *length as f64,
                ..*transform
            };
            passes(builder, &second, back, Factors { before: 0, after: *chirp }, double)
        }
    }
}

/// Bytes of a complex number.
fn number(double: bool) -> usize {
    if double { 16 } else { 8 }
}

fn passes(
    builder: &mut PlanBuilder<'_>,
    transform: &Transform,
    smooth: &Smooth,
    factors: Factors,
    double: bool,
) -> Result<(), OpError> {
    passes_of(builder, transform, smooth, factors, double, transform.length)
}

/// `whole`: the length that mirrored points refer to.
fn passes_of(
    builder: &mut PlanBuilder<'_>,
    transform: &Transform,
    smooth: &Smooth,
    factors: Factors,
    double: bool,
    whole: usize,
) -> Result<(), OpError> {
    let Transform { outers, inners, from, to, .. } = *transform;
    let (columns, rows, fine, coarse) = match smooth {
        Smooth::One(pass) => {
            let shape = Shape { subs: 1, in_k: 1, in_sub: 0, out_k: 1, out_sub: 0 };
            let mut params = params(transform, pass, shape, double, (from, to))?;
            params.whole = whole as u64;
            (params.before, params.after) = (factors.before, factors.after);
            return launch(builder, transform, params, (from, to), in_groups(&params, double));
        }
        Smooth::Two { columns, rows, fine, coarse } => (columns, rows, *fine, *coarse),
        Smooth::Many { length, radices, fine, coarse } => {
            let stages = (*length, radices.as_slice(), *fine, *coarse);
            return many_passes(builder, transform, stages, factors, double, whole);
        }
    };
    let n = columns.length * rows.length;
    let between = Side {
        operand: builder.scratch(outers * inners * n * number(double)),
        ty: if double { ElementType::F64 } else { ElementType::F32 },
        is_complex: true,
        outer: inners * n,
        inner: n,
        step: 1,
        length: n,
    };
    let (high, wide) = (columns.length, rows.length);
    let shape = Shape { subs: wide, in_k: wide, in_sub: 1, out_k: wide, out_sub: 1 };
    let mut first = params(transform, columns, shape, double, (from, between))?;
    first.whole = whole as u64;
    (first.before, first.fine, first.coarse, first.scale) = (factors.before, fine, coarse, 1.0);
    first.flags |= flags::STEP;
    launch(builder, transform, first, (from, between), in_groups(&first, double))?;
    let plain = Transform { window: None, mirrored: false, from: between, ..*transform };
    let shape = Shape { subs: high, in_k: 1, in_sub: wide, out_k: high, out_sub: 1 };
    let mut second = params(&plain, rows, shape, double, (between, to))?;
    second.after = factors.after;
    launch(builder, &plain, second, (between, to), in_groups(&second, double))
}

/// One pass over memory for each stage, to and fro between two copies.
fn many_passes(
    builder: &mut PlanBuilder<'_>,
    transform: &Transform,
    (n, radices, fine, coarse): (usize, &[u8], u64, u64),
    factors: Factors,
    double: bool,
    whole: usize,
) -> Result<(), OpError> {
    let Transform { outers, inners, .. } = *transform;
    let mut copy = || Side {
        operand: builder.scratch(outers * inners * n * number(double)),
        ty: if double { ElementType::F64 } else { ElementType::F32 },
        is_complex: true,
        outer: inners * n,
        inner: n,
        step: 1,
        length: n,
    };
    let copies = [copy(), copy()];
    let mut before = 1;
    for (i, &radix) in radices.iter().enumerate() {
        let (is_first, is_last) = (i == 0, i + 1 == radices.len());
        let from = if is_first { transform.from } else { copies[(i + 1) % 2] };
        let to = if is_last { transform.to } else { copies[i % 2] };
        let plain = Transform { window: None, mirrored: false, from, ..*transform };
        let stage = if is_first { transform } else { &plain };
        let pass = Pass { length: before, radices: Vec::new(), roots: 0 };
        let shape = Shape { subs: n / usize::from(radix), in_k: 1, in_sub: 0, out_k: 1, out_sub: 0 };
        let mut params = params(stage, &pass, shape, double, (from, to))?;
        params.lines = (outers * inners) as u64;
        params.whole = whole as u64;
        (params.radices, params.fine, params.coarse) = (radix.into(), fine, coarse);
        params.before = if is_first { factors.before } else { 0 };
        params.after = if is_last { factors.after } else { 0 };
        params.scale = if is_last { transform.scale } else { 1.0 };
        let name = if double { c"fft_in_memory_f64" } else { c"fft_in_memory_f32" };
        let groups = (outers * inners * n / usize::from(radix)).div_ceil(GROUP as usize);
        launch(builder, stage, params, (from, to), (name, groups))?;
        before *= usize::from(radix);
    }
    Ok(())
}

/// How lines of a pass lie in the lines of the transform.
struct Shape {
    subs: usize,
    in_k: usize,
    in_sub: usize,
    out_k: usize,
    out_sub: usize,
}

fn params(
    transform: &Transform,
    pass: &Pass,
    shape: Shape,
    double: bool,
    (from, to): (Side, Side),
) -> Result<FftParams, OpError> {
    let Transform { outers, inners, .. } = *transform;
    let lines = outers * inners * shape.subs;
    let mut flags = 0;
    for (flag, set) in [
        (flags::IN_COMPLEX, from.is_complex),
        (flags::OUT_REAL, !to.is_complex),
        (flags::MIRROR, transform.mirrored),
        (flags::ALONG_IN, shape.in_k * from.step == 1),
        (flags::ALONG_OUT, shape.out_k * to.step == 1),
    ] {
        flags |= if set { flag } else { 0 };
    }
    let radices = pass.radices.iter().rev().fold(0, |all, radix| all << 4 | u64::from(*radix));
    Ok(FftParams {
        roots: pass.roots,
        lines: lines as u64,
        in_outer: from.outer as u64,
        in_inner: from.inner as u64,
        in_step: from.step as u64,
        out_outer: to.outer as u64,
        out_inner: to.inner as u64,
        out_step: to.step as u64,
        from: from.length as u64,
        to: to.length as u64,
        whole: transform.length as u64,
        window_length: transform.window.map_or(0, |(_, length)| length as u64),
        scale: transform.scale,
        subs: divider(shape.subs)?,
        inners: divider(inners)?,
        in_k: shape.in_k as u32,
        in_sub: shape.in_sub as u32,
        out_k: shape.out_k as u32,
        out_sub: shape.out_sub as u32,
        n: pass.length as u32,
        lines_each: (points(double) / pass.length).clamp(1, lines.max(1)) as u32,
        in_type: from.ty as u32,
        out_type: to.ty as u32,
        flags,
        stages: pass.radices.len() as u32,
        radices,
        ..FftParams::zeroed()
    })
}

fn launch(
    builder: &mut PlanBuilder<'_>,
    transform: &Transform,
    params: FftParams,
    (from, to): (Side, Side),
    (name, groups): (&'static CStr, usize),
) -> Result<(), OpError> {
    let mut addresses =
        vec![(offset_of!(FftParams, input), from.operand), (offset_of!(FftParams, out), to.operand)];
    if let Some((window, _)) = transform.window {
        addresses.push((offset_of!(FftParams, window), window));
    }
    builder.launch(KernelName { family: "fft", name }, [groups, 1, 1], &params, &addresses)
}

/// The kernel of lines in workgroup memory, and its workgroups.
fn in_groups(params: &FftParams, double: bool) -> (&'static CStr, usize) {
    let name = if double { c"fft_f64" } else { c"fft_f32" };
    (name, (params.lines as usize).div_ceil(params.lines_each as usize))
}
