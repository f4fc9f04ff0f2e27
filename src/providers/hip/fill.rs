//! ConstantOfShape, Range, EyeLike, Trilu and OneHot: launches of `kernels/fill.hip`.

use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::ops::generate::{ConstantOfShape, EyeLike, Scalar, scalar_of};
use crate::ops::movement::{Movement, axis_of};
use crate::ops::select::OneHot;
use crate::providers::{Argument, NodeContext};
use crate::tensor::{ElementType, bf16, f16};

use super::elements::{element_size, halved};
use super::launch::{GROUP, KernelName, Operand};
use super::params::{Divider, divider, is_number};
use super::{Entry, HipKernel, PlanBuilder};

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("ConstantOfShape", constant),
    Entry::new("EyeLike", eye),
    Entry::new("OneHot", one_hot),
    Entry::new("Range", range),
    Entry::new("Trilu", trilu),
];

/// `Fill` in `move.h`: an element over 16 bytes, or the address of one.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
pub(super) struct Fill {
    pub(super) address: u64,
    pattern: [u64; 2],
}

impl Fill {
    /// An element's bytes, 1 to 16 of them.
    pub(super) fn of(element: &[u8]) -> Self {
        let mut bytes = [0u8; 16];
        bytes.iter_mut().zip(element.iter().cycle()).for_each(|(to, from)| *to = *from);
        Fill { address: 0, pattern: bytemuck::cast(bytes) }
    }

    /// A number as an element of a numeric type: rounded to the nearest, and saturated, in integers.
    pub(super) fn of_number(value: f32, ty: ElementType) -> Option<Self> {
        let whole = value.round_ties_even();
        Some(match ty {
            ElementType::F32 => Fill::of(&value.to_ne_bytes()),
            ElementType::F64 => Fill::of(&(value as f64).to_ne_bytes()),
            ElementType::F16 => Fill::of(&f16::from_f32(value).to_ne_bytes()),
            ElementType::BF16 => Fill::of(&bf16::from_f32(value).to_ne_bytes()),
            ElementType::U8 => Fill::of(&(whole as u8).to_ne_bytes()),
            ElementType::I8 => Fill::of(&(whole as i8).to_ne_bytes()),
            ElementType::U16 => Fill::of(&(whole as u16).to_ne_bytes()),
            ElementType::I16 => Fill::of(&(whole as i16).to_ne_bytes()),
            ElementType::U32 => Fill::of(&(whole as u32).to_ne_bytes()),
            ElementType::I32 => Fill::of(&(whole as i32).to_ne_bytes()),
            ElementType::U64 => Fill::of(&(whole as u64).to_ne_bytes()),
            ElementType::I64 => Fill::of(&(whole as i64).to_ne_bytes()),
            _ => return None,
        })
    }
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct FillParams {
    to: u64,
    bytes: u64,
    fill: Fill,
    size: u32,
    unused: u32,
}

const _: () = assert!(size_of::<FillParams>() == 48);

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct RangeParams {
    to: u64,
    count: u64,
    start: u64,
    delta: u64,
    ty: u32,
    unused: u32,
}

const _: () = assert!(size_of::<RangeParams>() == 40);

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct TriangleParams {
    to: u64,
    from: u64,
    shift_address: u64,
    shift: i64,
    count: u64,
    one: Fill,
    rows: Divider,
    columns: Divider,
    size: u32,
    upper: u32,
}

const _: () = assert!(size_of::<TriangleParams>() == 96);

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct OneHotParams {
    to: u64,
    indices: u64,
    values: u64,
    count: u64,
    depth: Divider,
    inner: Divider,
    index_type: u32,
    parts: u32,
    size: u32,
    unused: u32,
}

const _: () = assert!(size_of::<OneHotParams>() == 72);

fn name(name: &'static std::ffi::CStr) -> KernelName {
    KernelName { family: "fill", name }
}

/// Workgroups for one work item an element.
pub(super) fn groups(count: usize) -> [usize; 3] {
    [count.div_ceil(GROUP as usize), 1, 1]
}

fn wanted<'a>(outputs: &[Option<&'a [usize]>]) -> &'a [usize] {
    outputs.first().copied().flatten().unwrap_or(&[0])
}

/// Appends a launch that writes an element of `size` bytes, 8 at most, everywhere.
pub(super) fn plan_fill(
    plan: &mut PlanBuilder<'_>,
    to: Operand,
    count: usize,
    fill: Fill,
    size: usize,
) -> Result<(), OpError> {
    let bytes = count * size;
    let params = FillParams { to: 0, bytes: bytes as u64, fill, size: size as u32, unused: 0 };
    let groups = bytes.div_ceil(16 * GROUP as usize);
    plan.launch(name(c"fill_constant"), [groups, 1, 1], &params, &[(offset_of!(FillParams, to), to)])
}

fn constant(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let value = &node.op::<ConstantOfShape>().value;
    let bytes = value.buffer().map(|b| b.bytes()).filter(|_| (1..=8).contains(&value.ty().size()));
    let fill = Fill::of(bytes.ok_or_else(|| node.no_kernel())?);
    Ok(Box::new(ConstantKernel { fill, size: value.ty().size() }))
}

struct ConstantKernel {
    fill: Fill,
    /// Bytes of an element.
    size: usize,
}

impl HipKernel for ConstantKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        _: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let count = wanted(outputs).iter().product();
        plan_fill(plan, Operand::Output(0), count, self.fill, self.size)
    }
}

fn range(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    use ElementType as E;
    match node.input(0) {
        Some(ty @ (E::F32 | E::F64 | E::F16 | E::BF16 | E::I16 | E::I32 | E::I64)) => {
            Ok(Box::new(RangeKernel { ty }))
        }
        _ => Err(node.no_kernel()),
    }
}

struct RangeKernel {
    ty: ElementType,
}

impl HipKernel for RangeKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let bits = |i: usize| {
            let view = inputs.get(i).copied().flatten().and_then(|a| a.value);
            let number = view.and_then(|v| scalar_of(v.ty(), v.bytes()));
            number
                .map(|number| match number {
                    Scalar::Int(n) => n as u64,
                    Scalar::Float(x) => x.to_bits(),
                })
                .ok_or_else(|| OpError::Data(format!("input {i} must be one number")))
        };
        let count = wanted(outputs).iter().product();
        let (start, delta) = (bits(0)?, bits(2)?);
        let params = RangeParams { to: 0, count: count as u64, start, delta, ty: self.ty as u32, unused: 0 };
        let to = (offset_of!(RangeParams, to), Operand::Output(0));
        plan.launch(name(c"fill_range"), groups(count), &params, &[to])
    }
}

fn eye(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    use ElementType as E;
    let one: &[u8] = match node.output(0) {
        Some(E::F32) => &1f32.to_ne_bytes(),
        Some(E::F64) => &1f64.to_ne_bytes(),
        Some(E::F16) => &f16::ONE.to_ne_bytes(),
        Some(E::BF16) => &bf16::ONE.to_ne_bytes(),
        Some(E::U8 | E::I8 | E::Bool) => &[1],
        Some(E::U16 | E::I16) => &1u16.to_ne_bytes(),
        Some(E::U32 | E::I32) => &1u32.to_ne_bytes(),
        Some(E::U64 | E::I64) => &1u64.to_ne_bytes(),
        _ => return Err(node.no_kernel()),
    };
    let shift = node.op::<EyeLike>().k;
    Ok(Box::new(Triangle {
        one: Some(Fill::of(one)),
        shift,
        shift_input: None,
        upper: false,
        size: one.len(),
    }))
}

fn trilu(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let size = element_size(node, 0)?;
    let Movement::Trilu { upper } = *node.op::<Movement>() else { return Err(node.no_kernel()) };
    if size > 8 {
        return Err(node.no_kernel());
    }
    let shift_input = node.has_input(1).then_some(1);
    Ok(Box::new(Triangle { one: None, shift: 0, shift_input, upper, size }))
}

/// A part of each matrix of the input, or ones on a diagonal.
struct Triangle {
    one: Option<Fill>,
    shift: i64,
    shift_input: Option<usize>,
    upper: bool,
    /// Bytes of an element.
    size: usize,
}

impl HipKernel for Triangle {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let shape = wanted(outputs);
        let &[.., rows, columns] = shape else {
            return Err(OpError::Data(format!("the input has rank {}; at least 2 is needed", shape.len())));
        };
        if let Some(shift) = self.shift_input.and_then(|i| inputs.get(i).copied().flatten())
            && shift.shape.iter().product::<usize>() != 1
        {
            return Err(OpError::Data(format!("k has the shape {:?}; allowed is one element", shift.shape)));
        }
        let count: usize = shape.iter().product();
        let params = TriangleParams {
            shift: self.shift,
            count: count as u64,
            one: self.one.unwrap_or_default(),
            rows: divider(rows)?,
            columns: divider(columns)?,
            size: self.size as u32,
            upper: self.upper as u32,
            ..TriangleParams::zeroed()
        };
        let mut addresses = vec![(offset_of!(TriangleParams, to), Operand::Output(0))];
        if self.one.is_none() {
            addresses.push((offset_of!(TriangleParams, from), Operand::Input(0)));
        }
        if let Some(i) = self.shift_input {
            addresses.push((offset_of!(TriangleParams, shift_address), Operand::Input(i)));
        }
        plan.launch(name(c"fill_triangle"), groups(count), &params, &addresses)
    }

    fn in_place(&self) -> &[usize] {
        if self.one.is_none() { &[0] } else { &[] }
    }
}

fn one_hot(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let index_type = node.input(0).filter(|ty| is_number(*ty));
    let index_type = index_type.ok_or_else(|| node.no_kernel())?;
    Ok(Box::new(OneHotKernel { axis: node.op::<OneHot>().axis, index_type, size: element_size(node, 2)? }))
}

struct OneHotKernel {
    axis: i64,
    index_type: ElementType,
    /// Bytes of an element.
    size: usize,
}

impl HipKernel for OneHotKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        _: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let shape = wanted(outputs);
        let axis = axis_of(self.axis, shape.len())?;
        let count: usize = shape.iter().product();
        let (size, parts) = halved(self.size);
        let params = OneHotParams {
            count: count as u64,
            depth: divider(shape[axis])?,
            inner: divider(shape[axis + 1..].iter().product())?,
            index_type: self.index_type as u32,
            parts: parts as u32,
            size: size as u32,
            ..OneHotParams::zeroed()
        };
        plan.launch(
            name(c"fill_one_hot"),
            groups(count),
            &params,
            &[
                (offset_of!(OneHotParams, to), Operand::Output(0)),
                (offset_of!(OneHotParams, indices), Operand::Input(0)),
                (offset_of!(OneHotParams, values), Operand::Input(2)),
            ],
        )
    }
}
