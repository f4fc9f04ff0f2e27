//! The sliding window of convolutions and poolings: kernel, strides, dilations, padding.

use crate::graph::Dim;

use super::{AttributeReader, Infer, OpError};

/// How the input is padded.
#[derive(Clone, Debug, PartialEq)]
pub enum Padding {
    /// Begin of each spatial axis, then end of each; empty for none.
    Explicit(Vec<i64>),
    /// As many output positions as `ceil(input / stride)`; an odd rest at the end.
    SameUpper,
    /// The same, an odd rest at the begin.
    SameLower,
    Valid,
}

/// A window as the attributes give it. Lists are empty where the attribute is left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    pub kernel: Vec<i64>,
    pub strides: Vec<i64>,
    pub dilations: Vec<i64>,
    pub padding: Padding,
    /// Whether an incomplete last window counts.
    pub ceil: bool,
}

/// A window over an input of known size.
#[derive(Clone, Debug, PartialEq)]
pub struct Geometry {
    pub input: Vec<usize>,
    pub kernel: Vec<usize>,
    pub output: Vec<usize>,
    pub strides: Vec<usize>,
    pub dilations: Vec<usize>,
    pub pads_begin: Vec<usize>,
    pub pads_end: Vec<usize>,
}

impl Window {
    /// Reads `kernel_shape`, `strides`, `dilations`, `auto_pad` and `pads`.
    pub fn read(a: &AttributeReader<'_>) -> Result<Self, OpError> {
        let positive = |name: &str| -> Result<Vec<i64>, OpError> {
            let list = a.ints(name)?.unwrap_or(&[]);
            match list.iter().find(|&&x| x < 1 || x > i32::MAX as i64) {
                Some(x) => {
                    Err(OpError::attribute(name, format!("{x} is not allowed; allowed is 1 to 2147483647")))
                }
                None => Ok(list.to_vec()),
            }
        };
        let pads = a.ints("pads")?.unwrap_or(&[]);
        if let Some(x) = pads.iter().find(|&&x| x < 0 || x > i32::MAX as i64) {
            return Err(OpError::attribute(
                "pads",
                format!("{x} is not allowed; allowed is 0 to 2147483647"),
            ));
        }
        let padding = a.choice(
            "auto_pad",
            "NOTSET",
            &[("NOTSET", 0), ("", 0), ("SAME_UPPER", 1), ("SAME_LOWER", 2), ("VALID", 3)],
        )?;
        let padding = match padding {
            1 => Padding::SameUpper,
            2 => Padding::SameLower,
            3 => Padding::Valid,
            _ => Padding::Explicit(pads.to_vec()),
        };
        Ok(Window {
            kernel: positive("kernel_shape")?,
            strides: positive("strides")?,
            dilations: positive("dilations")?,
            padding,
            ceil: false,
        })
    }

    /// Refuses lists that do not have one entry (two for pads) for each spatial axis.
    pub fn check_rank(&self, axes: usize) -> Result<(), OpError> {
        let lists =
            [("kernel_shape", &self.kernel), ("strides", &self.strides), ("dilations", &self.dilations)];
        let pads = match &self.padding {
            Padding::Explicit(pads) => pads.len(),
            _ => 0,
        };
        for (name, len, want) in
            lists.map(|(name, list)| (name, list.len(), axes)).into_iter().chain([("pads", pads, 2 * axes)])
        {
            if len != 0 && len != want {
                let reason = format!("it has {len} entries; allowed is {want} for {axes} spatial axes");
                return Err(OpError::attribute(name, reason));
            }
        }
        Ok(())
    }

    fn stride(&self, axis: usize) -> i64 {
        self.strides.get(axis).copied().unwrap_or(1)
    }

    fn dilation(&self, axis: usize) -> i64 {
        self.dilations.get(axis).copied().unwrap_or(1)
    }

    /// Explicit padding at both ends of an axis; zero where it is computed.
    fn pads(&self, axis: usize, axes: usize) -> (i64, i64) {
        match &self.padding {
            Padding::Explicit(pads) if !pads.is_empty() => (pads[axis], pads[axes + axis]),
            _ => (0, 0),
        }
    }

    /// The output's spatial dimensions. `kernel` is that of the weight where the attribute is left
    /// out.
    pub fn output(&self, input: &[Dim], kernel: &[Dim]) -> Result<Vec<Dim>, OpError> {
        self.check_rank(input.len())?;
        (0..input.len()).map(|i| self.output_axis(i, input, &kernel[i])).collect()
    }

    fn output_axis(&self, i: usize, input: &[Dim], kernel: &Dim) -> Result<Dim, OpError> {
        let (one, stride) = (Dim::Known(1), Dim::Known(self.stride(i)));
        if matches!(self.padding, Padding::SameUpper | Padding::SameLower) {
            return Ok(input[i].ceil_div(&stride));
        }
        let (begin, end) = self.pads(i, input.len());
        let extent = kernel.sub(&one).mul(&Dim::Known(self.dilation(i))).add(&one);
        let room = input[i].add(&Dim::Known(begin + end)).sub(&extent);
        let output = if self.ceil {
            // A window that would begin in the padding at the end does not count.
            let last = input[i].add(&Dim::Known(begin - 1)).floor_div(&stride).add(&one);
            room.ceil_div(&stride).add(&one).min_of(&last)
        } else {
            room.floor_div(&stride).add(&one)
        };
        match output.known() {
            Some(n) if n < 0 => Err(OpError::attribute(
                "kernel_shape",
                format!(
                    "the window covers {extent} elements of spatial axis {i}, which has {} with its padding",
                    input[i].add(&Dim::Known(begin + end))
                ),
            )),
            _ => Ok(output),
        }
    }

    /// The window over an input of known size. The sizes were checked when shapes were inferred.
    pub fn geometry(&self, input: &[usize], kernel: &[usize]) -> Result<Geometry, OpError> {
        let axes = input.len();
        let dims = |sizes: &[usize]| sizes.iter().map(|&d| Dim::from(d)).collect::<Vec<_>>();
        let output: Vec<usize> = self
            .output(&dims(input), &dims(kernel))?
            .iter()
            .map(|d| d.known().and_then(|n| usize::try_from(n).ok()).unwrap_or(0))
            .collect();
        let strides: Vec<usize> = (0..axes).map(|i| self.stride(i) as usize).collect();
        let dilations: Vec<usize> = (0..axes).map(|i| self.dilation(i) as usize).collect();
        let pads: Vec<(usize, usize)> = (0..axes)
            .map(|i| {
                let extent = (kernel[i].max(1) - 1) * dilations[i] + 1;
                let covered = (output[i].max(1) - 1) * strides[i] + extent;
                let total = covered.saturating_sub(input[i]);
                match self.padding {
                    Padding::SameUpper => (total / 2, total - total / 2),
                    Padding::SameLower => (total - total / 2, total / 2),
                    _ => {
                        let (begin, end) = self.pads(i, axes);
                        (begin as usize, end as usize)
                    }
                }
            })
            .collect();
        Ok(Geometry {
            input: input.to_vec(),
            kernel: kernel.to_vec(),
            output,
            strides,
            dilations,
            pads_begin: pads.iter().map(|p| p.0).collect(),
            pads_end: pads.iter().map(|p| p.1).collect(),
        })
    }
}

/// The spatial dimensions of input 0, which is `[batch, channels, spatial…]`; `None` while its rank is
/// unknown.
pub fn spatial<'a>(cx: &Infer<'a>) -> Result<Option<&'a [Dim]>, OpError> {
    match cx.shape(0) {
        Some(shape) if shape.len() < 3 => {
            Err(cx.input_error(0, format!("its rank is {}; allowed are ranks from 3", shape.len())))
        }
        Some(shape) => Ok(Some(&shape[2..])),
        None => Ok(None),
    }
}

/// Refuses a weight whose rank no `[batch, channels, spatial…]` has. Kernels pack constant weights even where
/// the rank of input 0 is unknown until it runs.
pub fn check_weight_rank(cx: &Infer<'_>, weight: usize) -> Result<(), OpError> {
    match cx.shape(weight) {
        Some(shape) if shape.len() < 3 => {
            Err(cx.input_error(weight, format!("its rank is {}; allowed are ranks from 3", shape.len())))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(kernel: i64, stride: i64, dilation: i64, padding: Padding, ceil: bool) -> Window {
        Window { kernel: vec![kernel], strides: vec![stride], dilations: vec![dilation], padding, ceil }
    }

    #[test]
    fn outputs_and_pads() {
        let explicit = |b, e| Padding::Explicit(vec![b, e]);
        // Input, window, output, pads; outputs of torch's conv1d and max_pool1d where it has the mode.
        for (input, window, output, pads) in [
            (7, window(3, 2, 1, explicit(0, 0), false), 3, (0, 0)),
            (8, window(3, 2, 1, explicit(0, 0), true), 4, (0, 0)),
            (8, window(2, 2, 1, explicit(1, 1), true), 5, (1, 1)),
            (9, window(2, 3, 1, explicit(1, 1), true), 4, (1, 1)),
            (10, window(3, 1, 2, explicit(2, 2), false), 10, (2, 2)),
            (5, window(3, 2, 1, Padding::SameUpper, false), 3, (1, 1)),
            (6, window(3, 2, 1, Padding::SameUpper, false), 3, (0, 1)),
            (6, window(3, 2, 1, Padding::SameLower, false), 3, (1, 0)),
            (6, window(3, 2, 1, Padding::Valid, false), 2, (0, 0)),
        ] {
            let g = window.geometry(&[input], &[window.kernel[0] as usize]).unwrap();
            assert_eq!((g.output[0], (g.pads_begin[0], g.pads_end[0])), (output, pads), "{input} {window:?}");
        }
    }

    #[test]
    fn symbols_pass_through() {
        let same = window(3, 1, 1, Padding::Explicit(vec![1, 1]), false);
        let h = Dim::symbol("h");
        assert_eq!(same.output(std::slice::from_ref(&h), &[Dim::Known(3)]).unwrap(), vec![h]);
        assert!(same.output(&[Dim::Known(1)], &[Dim::Known(9)]).is_err());
    }
}
