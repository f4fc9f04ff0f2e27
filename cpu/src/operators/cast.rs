//! `Cast`, `CastLike`, `BitCast`.

use crate::ops::OpError;
use crate::ops::cast::{BitCast, Cast};
use crate::tensor::{ElementType, Tensor, TensorView, TensorViewMut, Value, ValueRef};

use crate::kernel::{CpuKernel, Entry, Kernel, KernelContext, NodeContext, ValueKernel};
use crate::loops::convert::{Conversion, RUN, Rounding, reader, writer};
use crate::loops::parallel::{GRAIN, split_mut};

pub(super) const KERNELS: &[Entry] =
    &[Entry::new("Cast", build), Entry::new("CastLike", build), Entry::new("BitCast", build_bits)];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = node.op::<Cast>();
    let rounding = Rounding { saturate: op.saturate, mode: op.round_mode };
    let (Some(from), Some(to)) = (node.input(0), node.output(0)) else { return Err(node.no_kernel()) };
    if from == to && from != ElementType::String {
        return Ok(CpuKernel::Tensor(Box::new(Bits { mask: None })));
    }
    match (from, to) {
        (ElementType::String, ElementType::String) => Ok(CpuKernel::Value(Box::new(Same))),
        (ElementType::String, to) => {
            let write = writer(to).ok_or_else(|| node.no_kernel())?;
            Ok(CpuKernel::Value(Box::new(Parse { to, write, rounding })))
        }
        (from, ElementType::String) => {
            reader(from).ok_or_else(|| node.no_kernel())?;
            Ok(CpuKernel::Value(Box::new(Print)))
        }
        (from, to) => {
            let conversion = Conversion::between(from, to).ok_or_else(|| node.no_kernel())?;
            Ok(CpuKernel::Tensor(Box::new(Convert { conversion, rounding })))
        }
    }
}

/// Converts numbers. Bound: one read and one write.
struct Convert {
    conversion: Conversion,
    rounding: Rounding,
}

impl Kernel for Convert {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(output), Some(x)) = (&mut outputs[0], inputs[0]) else { return Ok(()) };
        let (from, to) = (x.ty(), output.ty());
        split_mut(cx.pool, output.bytes(), to.size(), GRAIN, |range, part| {
            let x = &x.bytes()[range.start * from.size()..range.end * from.size()];
            for (x, y) in x.chunks(RUN * from.size()).zip(part.chunks_mut(RUN * to.size())) {
                let shape = [x.len() / from.size()];
                let x = TensorView::new(from, &shape, x);
                self.conversion.run(&x, &mut TensorViewMut::new(to, &shape, y), self.rounding);
            }
        });
        Ok(())
    }
}

/// A copy of strings.
struct Same;

impl ValueKernel for Same {
    fn run(&self, _cx: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        match inputs.first().copied().flatten() {
            Some(value) => Ok(vec![value.to_value()?]),
            None => Ok(Vec::new()),
        }
    }
}

/// Strings into numbers.
struct Parse {
    to: ElementType,
    write: fn(&[f64], &mut TensorViewMut<'_>, Rounding),
    rounding: Rounding,
}

impl ValueKernel for Parse {
    fn run(&self, _cx: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let value = inputs.first().copied().flatten();
        let Some((strings, shape)) = value.and_then(|v| v.strings().zip(v.shape())) else {
            return Ok(Vec::new());
        };
        // f64 does not hold every 64-bit integer.
        match self.to {
            ElementType::I64 => return whole(strings, shape, |x| x as i64),
            ElementType::U64 => return whole(strings, shape, |x| x as u64),
            _ => {}
        }
        let tensor = Tensor::zeros(self.to, shape)?;
        let numbers = strings.iter().map(|s| number(s)).collect::<Result<Vec<f64>, _>>()?;
        // SAFETY: the tensor was just made; nothing else holds it.
        (self.write)(&numbers, &mut unsafe { tensor.view_mut() }, self.rounding);
        Ok(vec![Value::Tensor(tensor)])
    }
}

fn number(text: &str) -> Result<f64, OpError> {
    // Rust also reads "inf" and "nan" in any case, with a sign.
    match text.trim() {
        // What a cast of a truth value to a string gives.
        "True" => Ok(1.0),
        "False" => Ok(0.0),
        trimmed => trimmed.parse::<f64>().map_err(|_| not_a_number(text)),
    }
}

fn not_a_number(text: &str) -> OpError {
    OpError::Data(format!(
        "the string {text:?} is no number; allowed are such as \"12\", \"-3.5\", \"1e-5\", \"inf\", \"nan\""
    ))
}

fn whole<T: crate::tensor::Element>(
    strings: &[String],
    shape: &[usize],
    of: fn(i128) -> T,
) -> Result<Vec<Value>, OpError> {
    let parse = |text: &String| match text.trim().parse::<i128>() {
        Ok(n) => Ok(of(n)),
        Err(_) => number(text).map(|x| of(x as i128)),
    };
    let numbers: Vec<T> = strings.iter().map(parse).collect::<Result<_, OpError>>()?;
    Ok(vec![Value::Tensor(Tensor::from_slice(shape, &numbers)?)])
}

/// Numbers into strings: the shortest text that reads back as the same number.
struct Print;

impl ValueKernel for Print {
    fn run(&self, _cx: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let Some(x) = inputs.first().copied().flatten().and_then(ValueRef::view) else {
            return Ok(Vec::new());
        };
        let strings = match x.ty() {
            ElementType::F32 => x.slice::<f32>().iter().map(|&x| float(x as f64, x.to_string())).collect(),
            ElementType::I64 => x.slice::<i64>().iter().map(i64::to_string).collect(),
            ElementType::U64 => x.slice::<u64>().iter().map(u64::to_string).collect(),
            ElementType::Bool => x
                .slice::<crate::tensor::Bool>()
                .iter()
                .map(|b| if b.get() { "True" } else { "False" }.to_owned())
                .collect(),
            ty => {
                let mut numbers = vec![0.0; x.len()];
                if let Some(read) = reader(ty) {
                    read(&x, &mut numbers);
                }
                let text = |x: f64| match ty.is_integer() {
                    true => (x as i64).to_string(),
                    // Types narrower than f32: f32's shortest text is enough.
                    false if ty != ElementType::F64 => float(x, (x as f32).to_string()),
                    false => float(x, x.to_string()),
                };
                numbers.into_iter().map(text).collect::<Vec<_>>()
            }
        };
        Ok(vec![Value::Tensor(Tensor::from_strings(x.shape(), strings))])
    }
}

/// The text of a float with a fraction even when it is whole, and numpy's words for the rest.
fn float(x: f64, text: String) -> String {
    if x.is_nan() {
        "nan".to_owned()
    } else if x.is_finite() && !text.contains('.') {
        text + ".0"
    } else {
        text
    }
}

fn build_bits(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let to = node.op::<BitCast>().to;
    let from = node.input(0).ok_or_else(|| node.no_kernel())?;
    // Narrow signed integers lie sign-extended in their byte; the others have zeros there.
    let mask = (from != to)
        .then_some(match to {
            ElementType::I4 => Some(Mask { shift: 4, signed: true }),
            ElementType::I2 => Some(Mask { shift: 6, signed: true }),
            ElementType::U4 | ElementType::F4E2M1 => Some(Mask { shift: 4, signed: false }),
            ElementType::U2 => Some(Mask { shift: 6, signed: false }),
            _ => None,
        })
        .flatten();
    Ok(CpuKernel::Tensor(Box::new(Bits { mask })))
}

/// How the bits above a narrow element are set.
#[derive(Clone, Copy)]
struct Mask {
    shift: u32,
    signed: bool,
}

/// Copies elements as they are. Bound: one read and one write.
struct Bits {
    mask: Option<Mask>,
}

impl Kernel for Bits {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(output), Some(x)) = (&mut outputs[0], inputs[0]) else { return Ok(()) };
        split_mut(cx.pool, output.bytes(), 1, 8 * GRAIN, |range, part| {
            part.copy_from_slice(&x.bytes()[range]);
            match self.mask {
                Some(Mask { shift, signed: true }) => {
                    part.iter_mut().for_each(|y| *y = (((*y << shift) as i8) >> shift) as u8);
                }
                Some(Mask { shift, signed: false }) => {
                    part.iter_mut().for_each(|y| *y = *y << shift >> shift)
                }
                None => {}
            }
        });
        Ok(())
    }
}
