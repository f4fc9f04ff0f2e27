//! Transposed convolution: the gradient of a convolution with respect to its input.

use std::sync::Arc;

use crate::graph::Dim;

use super::read_group;
use crate::ops::window::{Geometry, Padding, Window, check_weight_rank, spatial};
use crate::ops::{Declaration, Infer, OpError, Operator, Types};

#[derive(Clone, Debug, PartialEq)]
pub struct ConvTranspose {
    pub window: Window,
    pub group: usize,
    /// Elements added at the end of each axis; empty for none.
    output_padding: Vec<i64>,
    /// The spatial output shape, from which the padding follows; empty where it is not given.
    output_shape: Vec<i64>,
}

impl ConvTranspose {
    /// The output's dimension of an axis and the padding at its begin.
    fn axis(&self, i: usize, input: &[Dim], kernel: &[Dim]) -> Result<(Dim, Dim), OpError> {
        let at = |list: &[i64], default: i64| Dim::Known(list.get(i).copied().unwrap_or(default));
        let one = Dim::Known(1);
        let stride = at(&self.window.strides, 1);
        let extent = kernel[i].sub(&one).mul(&at(&self.window.dilations, 1)).add(&one);
        let full = input[i].sub(&one).mul(&stride).add(&extent).add(&at(&self.output_padding, 0));
        let wanted = match (&self.window.padding, self.output_shape.get(i)) {
            (_, Some(&n)) => Some(Dim::Known(n)),
            (Padding::SameUpper | Padding::SameLower, None) => Some(input[i].mul(&stride)),
            _ => None,
        };
        if let Some(output) = wanted {
            let total = full.sub(&output);
            let half = total.floor_div(&Dim::Known(2));
            let begin = if self.window.padding == Padding::SameUpper { half } else { total.sub(&half) };
            return Ok((output, begin));
        }
        let (begin, end) = match &self.window.padding {
            Padding::Explicit(pads) if !pads.is_empty() => (pads[i], pads[input.len() + i]),
            _ => (0, 0),
        };
        let output = full.sub(&Dim::Known(begin + end));
        match output.known() {
            Some(n) if n < 0 => Err(OpError::attribute(
                "pads",
                format!("they leave {n} elements of spatial axis {i}; allowed are numbers from 0"),
            )),
            _ => Ok((output, Dim::Known(begin))),
        }
    }

    fn check_rank(&self, axes: usize) -> Result<(), OpError> {
        self.window.check_rank(axes)?;
        for (name, list) in [("output_padding", &self.output_padding), ("output_shape", &self.output_shape)] {
            if !list.is_empty() && list.len() != axes {
                let reason = format!("it has {} entries; allowed is {axes}", list.len());
                return Err(OpError::attribute(name, reason));
            }
        }
        Ok(())
    }

    /// The convolution whose transpose this is: its input is our output.
    pub fn geometry(&self, input: &[usize], kernel: &[usize]) -> Result<Geometry, OpError> {
        let dims = |sizes: &[usize]| sizes.iter().map(|&d| Dim::from(d)).collect::<Vec<_>>();
        let (input_dims, kernel_dims) = (dims(input), dims(kernel));
        let size = |d: &Dim| d.known().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        let (mut output, mut begin) = (Vec::new(), Vec::new());
        for i in 0..input.len() {
            let (o, b) = self.axis(i, &input_dims, &kernel_dims)?;
            output.push(size(&o));
            begin.push(size(&b));
        }
        let list = |list: &[i64]| (0..input.len()).map(|i| list.get(i).map_or(1, |&x| x as usize)).collect();
        Ok(Geometry {
            input: output,
            kernel: kernel.to_vec(),
            output: input.to_vec(),
            strides: list(&self.window.strides),
            dilations: list(&self.window.dilations),
            pads_begin: begin,
            pads_end: vec![0; input.len()],
        })
    }
}

impl Operator for ConvTranspose {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        check_weight_rank(cx, 1)?;
        let (Some(space), Some(x), Some(w)) = (spatial(cx)?, cx.shape(0), cx.shape(1)) else { return Ok(()) };
        if w.len() != x.len() {
            let reason = format!("its rank is {}; allowed is that of X, {}", w.len(), x.len());
            return Err(cx.input_error(1, reason));
        }
        self.check_rank(space.len())?;
        cx.equal(1, "the channels of X that W takes", &x[1], &w[0])?;
        if let Some(c) = w[0].known()
            && c % self.group as i64 != 0
        {
            let reason = format!("{c} input channels cannot be split into {} groups", self.group);
            return Err(cx.input_error(1, reason));
        }
        for (i, &k) in self.window.kernel.iter().enumerate() {
            cx.equal(1, "the kernel of W", &Dim::Known(k), &w[i + 2])?;
        }
        let channels = w[1].mul(&Dim::from(self.group));
        if let Some(bias) = cx.shape_of_rank(2, 1)? {
            cx.equal(2, "its length", &channels, &bias[0])?;
        }
        let mut shape = vec![x[0].clone(), channels];
        for i in 0..space.len() {
            shape.push(self.axis(i, space, &w[2..])?.0);
        }
        cx.set_shape(0, shape);
        Ok(())
    }
}

pub(in crate::ops) const DECLARATIONS: &[Declaration] = &[Declaration::new(
    "ConvTranspose",
    &[1, 11, 22],
    "X:T, W:T, B?:T -> Y:T",
    &[("T", Types::FLOAT)],
    |a| {
        let sizes = |name: &str| -> Result<Vec<i64>, OpError> {
            let list = a.ints(name)?.unwrap_or(&[]);
            match list.iter().find(|&&x| x < 0 || x > i32::MAX as i64) {
                Some(x) => {
                    Err(OpError::attribute(name, format!("{x} is not allowed; allowed is 0 to 2147483647")))
                }
                None => Ok(list.to_vec()),
            }
        };
        Ok(Arc::new(ConvTranspose {
            window: Window::read(a)?,
            group: read_group(a)?,
            output_padding: sizes("output_padding")?,
            output_shape: sizes("output_shape")?,
        }))
    },
)];
