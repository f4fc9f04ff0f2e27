//! Images with their channels innermost times a gate of each channel: launches of `kernels/excite_nhwc.hip`, which makes
//! the gates too where that is less work than another launch.

use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::ops::channels_last::NhwcExcite;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::super::gemm::{Axis, Epilogue, Function, Matrix, Product};
use super::super::launch::{GROUP, KernelName, Operand};
use super::super::params::{Divider, MANY_GROUPS};
use super::super::{HipKernel, PlanBuilder};

/// As in the kernel: channels of a workgroup, and packs of a work item.
const SLAB: usize = 64;
const PER_ITEM: usize = 4;

/// Bytes of weights that workgroups may read anew: an estimate of what a large device's cache gives in the time of
/// another launch, not measured.
const MOST_WEIGHTS: usize = 4 << 20;

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct ExciteParams {
    x: u64,
    y: u64,
    hidden: u64,
    weight: u64,
    bias: u64,
    pixels: u32,
    channels: u32,
    inner: u32,
    ty: u32,
    slabs: Divider,
    packs: Divider,
    chunks: Divider,
    chunk: u32,
    function: Function,
}

const _: () = assert!(size_of::<ExciteParams>() == 120);

pub(super) fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    match node.input(0) {
        Some(ty @ (ElementType::F32 | ElementType::F16 | ElementType::BF16)) => {
            Ok(Box::new(Excite { op: *node.op::<NhwcExcite>(), ty }))
        }
        _ => Err(node.no_kernel()),
    }
}

struct Excite {
    op: NhwcExcite,
    ty: ElementType,
}

impl HipKernel for Excite {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(hidden)) = (inputs[0], inputs[1]) else { return Ok(()) };
        let ([images, space @ .., channels], Some(&inner)) = (x.shape, hidden.shape.last()) else {
            return Ok(());
        };
        let (images, channels, pixels) = (*images, *channels, space.iter().product::<usize>());
        if images * channels * pixels == 0 {
            return Ok(());
        }
        let pack = 16 / self.ty.size();
        let all = channels.div_ceil(pack);
        let packs = all.div_ceil(all.div_ceil(SLAB / pack));
        let slabs = all.div_ceil(packs);
        // Chunks that keep all work items busy, and all processors where there is enough to do.
        let (least, most) = ((GROUP as usize).div_ceil(packs), PER_ITEM * GROUP as usize / packs);
        let chunk = (pixels * images * slabs).div_ceil(MANY_GROUPS).clamp(least.min(most), most);
        let chunks = pixels.div_ceil(chunk);
        let groups = images * slabs * chunks;
        if x.shape.iter().any(|&d| d > i32::MAX as usize) || groups.max(pixels) > i32::MAX as usize {
            return Err(OpError::Unsupported("a GPU scale of channels over 2³¹ pixels".to_owned()));
        }
        let has_bias = inputs.get(3).is_some_and(Option::is_some);
        let mut params = ExciteParams {
            pixels: pixels as u32,
            channels: channels as u32,
            inner: inner as u32,
            ty: self.ty as u32,
            slabs: Divider::new(slabs),
            packs: Divider::new(packs),
            chunks: Divider::new(chunks),
            chunk: chunk as u32,
            function: Function::of(self.op.activation),
            ..ExciteParams::zeroed()
        };
        let mut addresses = vec![
            (offset_of!(ExciteParams, x), Operand::Input(0)),
            (offset_of!(ExciteParams, y), Operand::Output(0)),
        ];
        if groups * packs * pack * inner * self.ty.size() > MOST_WEIGHTS.max(channels * inner * 8) {
            let gates = plan.scratch(images * channels * self.ty.size());
            self.product(images, channels, inner, has_bias, gates).plan(plan, self.ty)?;
            params.inner = 0;
            addresses.push((offset_of!(ExciteParams, hidden), gates));
        } else {
            addresses.push((offset_of!(ExciteParams, hidden), Operand::Input(1)));
            addresses.push((offset_of!(ExciteParams, weight), Operand::Input(2)));
            if has_bias {
                addresses.push((offset_of!(ExciteParams, bias), Operand::Input(3)));
            }
        }
        let name = KernelName { family: "excite_nhwc", name: c"excite_nhwc" };
        plan.launch(name, [groups, 1, 1], &params, &addresses)
    }
}

impl Excite {
    /// The gates of all images.
    fn product(&self, m: usize, n: usize, k: usize, has_bias: bool, out: Operand) -> Product {
        Product {
            m,
            n,
            k,
            a: Matrix::new(Operand::Input(1), k, 1),
            b: Matrix::new(Operand::Input(2), 1, k),
            out: Matrix::new(out, n, 1),
            bias: has_bias.then(|| Matrix::new(Operand::Input(3), 0, 1)),
            residual: None,
            batch: vec![Axis { size: 1, strides: [0; 5] }],
            epilogue: Epilogue { activation: self.op.activation, ..Epilogue::default() },
        }
    }
}
