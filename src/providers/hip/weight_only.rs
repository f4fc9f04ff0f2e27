//! MatMulNBits: launches of `kernels/weight_only.hip`.

use std::ffi::CStr;
use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::ops::weight_only::MatMulNBits;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::fill::groups;
use super::gemm::{Epilogue, Matrix, Product};
use super::launch::{GROUP, KernelName, Operand};
use super::{Entry, HipKernel, PlanBuilder};

pub(super) const KERNELS: &[Entry] = &[Entry::new("MatMulNBits", build).domain("com.microsoft")];

/// Rows that the kernel for few rows takes, and numbers of the weight that a work item unpacks at a time.
const FEW: usize = 4;
const RUN: usize = 16;

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct WeightParams {
    a: u64,
    weight: u64,
    scales: u64,
    zeros: u64,
    groups: u64,
    bias: u64,
    out: u64,
    errors: u64,
    m: u32,
    n: u32,
    k: u32,
    bits: u32,
    block: u32,
    blocks: u32,
    zero_bytes: u32,
    zero_type: u32,
}

const _: () = assert!(size_of::<WeightParams>() == 96);

fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let ty = node.input(0).ok_or_else(|| node.no_kernel())?;
    let names = match ty {
        ElementType::F32 => [c"weight_few_f32", c"weight_unpack_f32"],
        ElementType::F16 => [c"weight_few_f16", c"weight_unpack_f16"],
        ElementType::BF16 => [c"weight_few_bf16", c"weight_unpack_bf16"],
        _ => return Err(node.no_kernel()),
    };
    let zero_type = node.input(3).unwrap_or(ElementType::U8) as u32;
    Ok(Box::new(WeightKernel { op: *node.op::<MatMulNBits>(), ty, zero_type, names }))
}

struct WeightKernel {
    op: MatMulNBits,
    ty: ElementType,
    zero_type: u32,
    /// Of the kernel for few rows, and of the one that unpacks.
    names: [&'static CStr; 2],
}

impl HipKernel for WeightKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let given = |i: usize| inputs.get(i).is_some_and(Option::is_some);
        let Some(a) = inputs.first().copied().flatten() else { return Ok(()) };
        let (n, k) = (self.op.n, self.op.k);
        let m: usize = a.shape.iter().rev().skip(1).product();
        let params = WeightParams {
            m: m.min(FEW) as u32,
            n: n as u32,
            k: k as u32,
            bits: self.op.bits as u32,
            block: self.op.block.trailing_zeros(),
            blocks: self.op.blocks() as u32,
            zero_bytes: self.op.zero_bytes() as u32,
            zero_type: self.zero_type,
            ..WeightParams::zeroed()
        };
        let mut addresses = vec![
            (offset_of!(WeightParams, a), Operand::Input(0)),
            (offset_of!(WeightParams, weight), Operand::Input(1)),
            (offset_of!(WeightParams, scales), Operand::Input(2)),
        ];
        let optional = [
            (3, offset_of!(WeightParams, zeros)),
            (4, offset_of!(WeightParams, groups)),
            (5, offset_of!(WeightParams, bias)),
        ];
        addresses.extend(optional.into_iter().filter(|o| given(o.0)).map(|(i, at)| (at, Operand::Input(i))));
        if given(4) {
            addresses.push((offset_of!(WeightParams, errors), Operand::Errors));
        }
        let out = offset_of!(WeightParams, out);
        let [few, unpack] = self.names.map(|name| KernelName { family: "weight_only", name });
        if m <= FEW {
            addresses.push((out, Operand::Output(0)));
            let columns = GROUP as usize / plan.provider.unit().wave;
            let grid = if m == 0 { 0 } else { n.div_ceil(columns) };
            return plan.launch(few, [grid, 1, 1], &params, &addresses);
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
            bias: given(5).then(|| Matrix::new(Operand::Input(5), 0, 1)),
            residual: None,
            batch: Vec::new(),
            epilogue: Epilogue::default(),
        };
        product.plan(plan, self.ty)
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::Attribute;
    use crate::tensor::{ElementType, Tensor, Value};

    use super::super::testing::{both_in, pattern, small_integers};

    #[test]
    fn weights_of_few_bits() {
        for ty in [ElementType::F32, ElementType::F16, ElementType::BF16] {
            for (bits, block, m, n, k) in
                [(4, 16, 1, 9, 40), (4, 32, 3, 33, 128), (8, 32, 70, 20, 96), (2, 64, 5, 7, 130)]
            {
                for with in [false, true] {
                    let blocks = (k as usize).div_ceil(block);
                    let attributes: Vec<(&str, Attribute)> = [
                        ("N", n as i64),
                        ("K", k as i64),
                        ("bits", bits as i64),
                        ("block_size", block as i64),
                    ]
                    .map(|(name, value)| (name, Attribute::Int(value)))
                    .to_vec();
                    let order: Vec<i32> =
                        (0..k).map(|i| (i * 7 % blocks as i32).min(blocks as i32 - 1)).collect();
                    let order =
                        Value::Tensor(Tensor::from_slice(&[order.len()], &order).expect("memory for a test"));
                    let inputs = [
                        small_integers(ty, &[m, k as usize]),
                        pattern(ElementType::U8, &[n, blocks, block * bits / 8]),
                        small_integers(ty, &[n * blocks]),
                        with.then(|| pattern(ElementType::U8, &[n * (blocks * bits).div_ceil(8)])).flatten(),
                        (with && m < 5).then_some(order),
                        with.then(|| small_integers(ty, &[n])).flatten(),
                    ];
                    let Some(out) = both_in("com.microsoft", "MatMulNBits", 1, &attributes, &inputs, 1)
                    else {
                        return;
                    };
                    let relative = if ty == ElementType::BF16 { 2e-2 } else { 2e-3 };
                    out.assert_close(&format!("{ty} {bits} bits {m}x{n}x{k} {with}"), relative);
                }
            }
        }
    }
}
