//! `QuantizeLinear`, `DequantizeLinear`, `DynamicQuantizeLinear`.

pub(crate) mod dynamic;

use std::marker::PhantomData;
use std::ops::Range;

use crate::ops::OpError;
use crate::ops::quantize::{Dequantize, Granularity, Layout, Quantize, check_scale};
use crate::tensor::{
    ElementType, F4E2M1, F6E2M3, F6E3M2, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, I2, I4, TensorView,
    TensorViewMut, U2, U4, bf16, f16,
};

use crate::kernel::{Argument, CpuKernel, Entry, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::convert::reader;
use crate::loops::number::dispatch;
use crate::loops::parallel::{GRAIN, split_mut};
use crate::loops::quantization::{Quantized, divide, round_to};
use crate::loops::widen::{RUN, Widen};

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("QuantizeLinear", build_quantize),
    Entry::new("DequantizeLinear", build_dequantize),
    Entry::new("DynamicQuantizeLinear", dynamic::build),
    Entry::new("QuantizeLinear", build_quantize).domain("com.microsoft"),
    Entry::new("DequantizeLinear", build_dequantize).domain("com.microsoft"),
];

fn build_quantize(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = *node.op::<Quantize>();
    let load = loader(node.input(0)).ok_or_else(|| node.no_kernel())?;
    let precision = op.precision.or(node.input(1)).ok_or_else(|| node.no_kernel())?;
    let kernel: Box<dyn Kernel> = dispatch!(node.output(0), Q in [
            u8, i8, u16, i16, U4, I4, U2, I2, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F4E2M1, F6E2M3, F6E3M2
        ] => Box::new(QuantizeKernel::<Q> { op, load, precision, _type: PhantomData }),
        else return Err(node.no_kernel()));
    Ok(CpuKernel::Tensor(kernel))
}

/// Reads elements of a range as f32.
type Load = fn(&TensorView<'_>, Range<usize>, &mut [f32]);

fn loader(ty: Option<ElementType>) -> Option<Load> {
    fn float<T: Widen<Wide = f32>>(x: &TensorView<'_>, range: Range<usize>, to: &mut [f32]) {
        T::copy(&x.slice::<T>()[range], to);
    }
    fn integer(x: &TensorView<'_>, range: Range<usize>, to: &mut [f32]) {
        to.iter_mut().zip(&x.slice::<i32>()[range]).for_each(|(to, &x)| *to = x as f32);
    }
    match ty {
        Some(ElementType::I32) => Some(integer),
        ty => dispatch!(ty, T in [f32, f16, bf16] => Some(float::<T> as Load), else None),
    }
}

/// Scales and zero points in f32, in the scratch memory.
struct Parameters<'a> {
    scales: &'a [f32],
    /// One for each scale, or one.
    zeros: &'a [f32],
}

impl<'a> Parameters<'a> {
    fn new(
        scratch: &'a mut [f32],
        scale: &TensorView<'_>,
        zero: Option<&TensorView<'_>>,
    ) -> Result<Self, OpError> {
        let (scales, rest) = scratch.split_at_mut(scale.len());
        read(scale, scales);
        scales.iter().try_for_each(|&s| check_scale(s))?;
        let zeros: &[f32] = match zero {
            Some(zero) => {
                let zeros = &mut rest[..zero.len()];
                read(zero, zeros);
                zeros
            }
            None => &[0.0],
        };
        Ok(Parameters { scales, zeros })
    }

    fn scratch(inputs: &[Option<Argument<'_>>]) -> usize {
        let count =
            |i: usize| inputs.get(i).copied().flatten().map_or(0, |a| a.shape.iter().product::<usize>());
        (count(1) + count(2)) * size_of::<f32>()
    }

    fn scale(&self, range: Range<usize>) -> &[f32] {
        &self.scales[range]
    }

    fn zero(&self, range: Range<usize>) -> &[f32] {
        if self.zeros.len() == 1 { self.zeros } else { &self.zeros[range] }
    }
}

fn read(from: &TensorView<'_>, to: &mut [f32]) {
    let Some(read) = reader(from.ty()) else { return };
    let (mut wide, size) = ([0.0f64; RUN], from.ty().size());
    for (to, from_bytes) in to.chunks_mut(RUN).zip(from.bytes().chunks(RUN * size)) {
        let shape = [to.len()];
        let wide = &mut wide[..to.len()];
        read(&TensorView::new(from.ty(), &shape, from_bytes), wide);
        to.iter_mut().zip(wide).for_each(|(to, x)| *to = *x as f32);
    }
}

/// The layout and how work on it is cut: units of elements that start with a fresh scale.
struct Cut {
    layout: Layout,
    unit: usize,
}

impl Cut {
    fn prepare(granularity: Granularity, inputs: &[Option<Argument<'_>>]) -> Result<Prepared, OpError> {
        let (Some(x), Some(scale)) = (inputs[0], inputs[1]) else { return Ok(Prepared::default()) };
        let layout = granularity.layout(x.shape, scale.shape)?;
        let unit = match layout {
            Layout::PerTensor => 1,
            Layout::PerAxis { axis, inner: 1, .. } | Layout::Blocked { axis, inner: 1, .. } => axis,
            Layout::PerAxis { inner, .. } | Layout::Blocked { inner, .. } => inner,
        };
        let cut = Cut { layout, unit };
        Ok(Prepared { state: Some(Box::new(cut)), scratch: Parameters::scratch(inputs) })
    }

    /// Calls `body` with runs of at most [`RUN`] elements of the units `units`, and the scales they
    /// use: one for all, or one for each.
    fn runs(&self, units: Range<usize>, mut body: impl FnMut(Range<usize>, Range<usize>)) {
        let mut pieces = |elements: Range<usize>, scales: Range<usize>| {
            for start in elements.clone().step_by(RUN) {
                let end = (start + RUN).min(elements.end);
                let skip = start - elements.start;
                let scales = match scales.len() {
                    1 => scales.clone(),
                    _ => scales.start + skip..scales.start + skip + (end - start),
                };
                body(start..end, scales);
            }
        };
        match self.layout {
            Layout::PerTensor => pieces(units, 0..1),
            Layout::PerAxis { axis, inner: 1, .. } => {
                units.for_each(|u| pieces(u * axis..(u + 1) * axis, 0..axis));
            }
            Layout::PerAxis { axis, inner, .. } => {
                units.for_each(|u| pieces(u * inner..(u + 1) * inner, u % axis..u % axis + 1));
            }
            Layout::Blocked { axis, inner: 1, block, .. } => {
                let blocks = axis.div_ceil(block);
                for u in units {
                    for b in 0..blocks {
                        let elements = u * axis + b * block..u * axis + ((b + 1) * block).min(axis);
                        pieces(elements, u * blocks + b..u * blocks + b + 1);
                    }
                }
            }
            Layout::Blocked { axis, inner, block, .. } => {
                let blocks = axis.div_ceil(block);
                for u in units {
                    let row = (u / axis * blocks + u % axis / block) * inner;
                    pieces(u * inner..(u + 1) * inner, row..row + inner);
                }
            }
        }
    }

    fn grain(&self) -> usize {
        (GRAIN / self.unit.max(1)).max(1)
    }
}

/// Bound: one read and one (narrower) write.
struct QuantizeKernel<Q> {
    op: Quantize,
    load: Load,
    /// The type to divide in.
    precision: ElementType,
    _type: PhantomData<fn(Q)>,
}

impl<Q: Quantized> Kernel for QuantizeKernel<Q> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(output), Some(x), Some(scale)) = (&mut outputs[0], &inputs[0], &inputs[1]) else {
            return Ok(());
        };
        let zero = inputs.get(2).and_then(Option::as_ref);
        let parameters = Parameters::new(cx.scratch(), scale, zero)?;
        let cut: &Cut = cx.state();
        let plain = x.ty() == ElementType::F32 && self.precision == ElementType::F32;
        if let (true, &[scale], &[zero]) = (plain, parameters.scales, parameters.zeros) {
            let x = x.slice::<f32>();
            split_mut(cx.pool, output.slice::<Q>(), 1, GRAIN, |range, y| {
                Q::quantize_scaled(&x[range], scale, zero, self.op.saturate, y);
            });
            return Ok(());
        }
        split_mut(cx.pool, output.slice::<Q>(), cut.unit, cut.grain(), |units, part| {
            let start = units.start * cut.unit;
            let mut wide = [0.0f32; RUN];
            cut.runs(units, |elements, scales| {
                let y = &mut part[elements.start - start..elements.end - start];
                let wide = &mut wide[..y.len()];
                (self.load)(x, elements, wide);
                round_to(self.precision, wide);
                let scale = parameters.scale(scales.clone());
                divide(wide, scale);
                round_to(self.precision, wide);
                Q::quantize(wide, parameters.zero(scales), self.op.saturate, y);
            });
        });
        Ok(())
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        Cut::prepare(self.op.granularity, inputs)
    }
}

fn build_dequantize(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    fn kernel<Q: Quantized>(
        granularity: Granularity,
        output: Option<ElementType>,
    ) -> Option<Box<dyn Kernel>> {
        Some(match output? {
            ElementType::F32 => Box::new(DequantizeKernel::<Q, f32> { granularity, _types: PhantomData }),
            ElementType::F16 => Box::new(DequantizeKernel::<Q, f16> { granularity, _types: PhantomData }),
            ElementType::BF16 => Box::new(DequantizeKernel::<Q, bf16> { granularity, _types: PhantomData }),
            _ => return None,
        })
    }
    let granularity = node.op::<Dequantize>().granularity;
    let kernel = dispatch!(node.input(0), Q in [
            u8, i8, u16, i16, i32, U4, I4, U2, I2, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F4E2M1, F6E2M3, F6E3M2
        ] => kernel::<Q>(granularity, node.output(0)), else None);
    kernel.map(CpuKernel::Tensor).ok_or_else(|| node.no_kernel())
}

struct DequantizeKernel<Q, T> {
    granularity: Granularity,
    _types: PhantomData<fn(Q) -> T>,
}

impl<Q: Quantized, T: Widen<Wide = f32>> Kernel for DequantizeKernel<Q, T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(output), Some(x), Some(scale)) = (&mut outputs[0], inputs[0], &inputs[1]) else {
            return Ok(());
        };
        let zero = inputs.get(2).and_then(Option::as_ref);
        let parameters = Parameters::new(cx.scratch(), scale, zero)?;
        let cut: &Cut = cx.state();
        let x = x.slice::<Q>();
        split_mut(cx.pool, output.slice::<T>(), cut.unit, cut.grain(), |units, part| {
            let start = units.start * cut.unit;
            let mut buffer = [0.0f32; RUN];
            cut.runs(units, |elements, scales| {
                let y = &mut part[elements.start - start..elements.end - start];
                T::store(y, &mut buffer, |y| {
                    Q::dequantize(&x[elements], parameters.zero(scales.clone()), parameters.scale(scales), y);
                });
            });
        });
        Ok(())
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        Cut::prepare(self.granularity, inputs)
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::OpError;

    use crate::graph::Attribute;
    use crate::tensor::{I4, Value};
    use crate::testing::{elements, run, run_in, t};

    #[test]
    fn a_bad_scale_is_an_error_that_says_so() {
        for scale in [f32::NAN, f32::NEG_INFINITY, f32::INFINITY] {
            for (name, x) in
                [("QuantizeLinear", t(&[2], &[1.0f32, 2.0])), ("DequantizeLinear", t(&[2], &[1u8, 2]))]
            {
                let result = run(name, 19, &[], &[x, t(&[], &[scale]), t(&[], &[0u8])], 1);
                match result {
                    Err(OpError::Input { index: 1, reason, .. }) => {
                        assert!(reason.contains("scale"), "{reason}")
                    }
                    other => panic!("{name} with scale {scale}: {other:?}"),
                }
            }
        }
        let result = run("DynamicQuantizeLinear", 11, &[], &[t(&[2], &[1.0f32, f32::NAN])], 3);
        assert!(matches!(result, Err(OpError::Data(_))), "{result:?}");
    }

    /// The forms of com.microsoft; numbers of ONNX Runtime.
    #[test]
    fn quantizes_to_16_and_from_4_bits() {
        let x = t(&[2, 4], &[-3.0f32, -0.26, 0.0, 0.24, 0.25, 0.75, 1.3, 900.0]);
        let run = |name: &str, attributes: &[(&str, Attribute)], inputs: &[Option<Value>]| {
            run_in("com.microsoft", name, 1, attributes, inputs, 1).unwrap().remove(0)
        };
        let hundredth = || t(&[], &[0.01f32]);
        let y = run("QuantizeLinear", &[], &[x.clone(), hundredth(), t(&[], &[5i16])]);
        assert_eq!(elements::<i16>(&y).1, [-295, -21, 5, 29, 30, 80, 135, 32767]);
        let y = run("QuantizeLinear", &[], &[x.clone(), hundredth(), t(&[], &[500u16])]);
        assert_eq!(elements::<u16>(&y).1, [200, 474, 500, 524, 525, 575, 630, 65535]);
        let scales = t(&[2], &[0.01f32, 0.02]);
        let y =
            run("QuantizeLinear", &[("axis", Attribute::Int(0))], &[x.clone(), scales, t(&[2], &[5i8, -3])]);
        assert_eq!(elements::<i8>(&y).1, [-128, -21, 5, 29, 9, 35, 62, 127]);
        let y = run("QuantizeLinear", &[], &[x, hundredth()]);
        assert_eq!(elements::<u8>(&y).1, [0, 0, 0, 24, 25, 75, 130, 255]);
        let x = t(&[3], &[-300i16, 7, 32767]);
        let y = run("DequantizeLinear", &[], &[x, hundredth(), t(&[], &[5i16])]);
        assert_eq!(elements::<f32>(&y).1, [-3.05, 0.02, 327.62]);
        let x = t(&[4], &[-8i8, -1, 0, 7].map(I4));
        let y = run("DequantizeLinear", &[], &[x, t(&[], &[0.5f32]), t(&[], &[I4(2)])]);
        assert_eq!(elements::<f32>(&y).1, [-5.0, -1.5, -1.0, 2.5]);
    }

    #[test]
    fn rounds_to_even_saturates_and_accepts_all_zeros() {
        let x = t(&[6], &[0.5f32, 1.5, -2.5, 1e9, -1e9, f32::NAN]);
        let out = run("QuantizeLinear", 19, &[], &[x, t(&[], &[1.0f32]), t(&[], &[1i8])], 1).unwrap();
        assert_eq!(elements::<i8>(&out[0]).1[..5], [1, 3, -1, 127, -128]);
        let out = run("DynamicQuantizeLinear", 11, &[], &[t(&[2], &[0.0f32, 0.0])], 3).unwrap();
        assert_eq!(elements::<u8>(&out[0]).1, [0, 0]);
    }
}
