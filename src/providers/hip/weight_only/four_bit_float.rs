//! MatMulBlockQuantizedFp4Weight: launches of `kernels/weight_only.hip`, whose weight is floats of 4 bits.

use std::ffi::CStr;
use std::mem::offset_of;

use bytemuck::Zeroable;

use crate::ops::OpError;
use crate::ops::weight_only::four_bit_float::FourBitFloatProduct;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::super::fill::groups;
use super::super::gemm::{Epilogue, Matrix, Product};
use super::super::launch::{GROUP, KernelName, Operand};
use super::super::{HipKernel, PlanBuilder};
use super::{FEW, RUN, WeightParams};

const BIAS: usize = 5;

/// For blocks of a power of two numbers from 16 on, which have a scale of their own in each run of them.
pub(super) fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let block = node.op::<FourBitFloatProduct>().block;
    let ty = node.input(0).filter(|_| block >= RUN && block.is_power_of_two());
    let (ty, names) = ty.and_then(|ty| Some((ty, super::names(ty)?))).ok_or_else(|| node.no_kernel())?;
    Ok(Box::new(FourBitFloats { block, ty, names }))
}

struct FourBitFloats {
    block: usize,
    ty: ElementType,
    names: [&'static CStr; 2],
}

impl HipKernel for FourBitFloats {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let shape = |i: usize| inputs.get(i).copied().flatten().map(|input| input.shape);
        let (Some(a), Some(&[n, bytes]), Some(Some(_))) = (shape(0), shape(1), outputs.first()) else {
            return Ok(());
        };
        let (m, k) = (a.iter().rev().skip(1).product::<usize>(), 2 * bytes);
        if m == 0 || n == 0 {
            return Ok(());
        }
        let params = WeightParams {
            m: m.min(FEW) as u32,
            n: n as u32,
            k: k as u32,
            bits: 4,
            block: self.block.trailing_zeros(),
            blocks: k.div_ceil(self.block) as u32,
            zero_bytes: bytes as u32,
            zero_type: ElementType::F4E2M1 as u32,
            ..WeightParams::zeroed()
        };
        let bias = shape(BIAS).is_some();
        let mut addresses = vec![
            (offset_of!(WeightParams, a), Operand::Input(0)),
            (offset_of!(WeightParams, weight), Operand::Input(1)),
            (offset_of!(WeightParams, scales), Operand::Input(2)),
            (offset_of!(WeightParams, zeros), Operand::Input(3)),
        ];
        let out = offset_of!(WeightParams, out);
        let [few, unpack] = self.names.map(|name| KernelName { family: "weight_only", name });
        if m <= FEW {
            if bias {
                addresses.push((offset_of!(WeightParams, bias), Operand::Input(BIAS)));
            }
            addresses.push((out, Operand::Output(0)));
            let columns = GROUP as usize / plan.provider.unit().wave;
            return plan.launch(few, [n.div_ceil(columns), 1, 1], &params, &addresses);
        }
        let whole = plan.scratch(n * k * self.ty.size());
        addresses.push((out, whole));
        plan.launch(unpack, groups(n * k.div_ceil(RUN)), &params, &addresses)?;
        let product = Product {
            m,
            n,
            k,
            a: Matrix::new(Operand::Input(0), k, 1),
            b: Matrix::new(whole, 1, k),
            out: Matrix::new(Operand::Output(0), n, 1),
            bias: bias.then(|| Matrix::new(Operand::Input(BIAS), 0, 1)),
            residual: None,
            batch: Vec::new(),
            epilogue: Epilogue::default(),
        };
        product.plan(plan, self.ty)
    }
}
