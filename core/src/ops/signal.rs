//! Signal processing: window functions and mel filters.

use std::sync::Arc;

use crate::graph::Dim;
use crate::tensor::ElementType;

use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// A window function of `size` points.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    pub shape: WindowShape,
    pub periodic: bool,
    pub ty: ElementType,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowShape {
    Hann,
    Hamming,
    Blackman,
}

impl Operator for Window {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        cx.set_element_type(0, self.ty);
        let size = cx.ints(0).and_then(|v| v.into_iter().next()).unwrap_or_else(|| cx.unknown());
        if size.known().is_some_and(|s| s < 0) {
            return Err(cx.input_error(0, format!("{size} is no size; allowed are 0 and above")));
        }
        cx.set_shape(0, vec![size]);
        Ok(())
    }
}

/// Weights `[dft_length/2 + 1, num_mel_bins]` that turn a spectrum into mel bins.
#[derive(Clone, Debug, PartialEq)]
pub struct MelWeightMatrix {
    pub ty: ElementType,
}

impl Operator for MelWeightMatrix {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        cx.set_element_type(0, self.ty);
        let mut one = |i: usize| {
            let n = cx.ints(i).and_then(|v| v.into_iter().next()).unwrap_or_else(|| cx.unknown());
            match n.known() {
                Some(k) if k < 0 => {
                    Err(cx.input_error(i, format!("{k} is negative; allowed are 0 and above")))
                }
                _ => Ok(n),
            }
        };
        let (bins, length) = (one(0)?, one(1)?);
        cx.set_shape(0, vec![length.floor_div(&Dim::Known(2)).add(&Dim::Known(1)), bins]);
        Ok(())
    }
}

fn output_type(a: &AttributeReader<'_>) -> Result<ElementType, OpError> {
    let ty = a.element_type("output_datatype")?.unwrap_or(ElementType::F32);
    if Types::NUMERIC.contains(&crate::tensor::ValueType::Tensor(ty)) {
        return Ok(ty);
    }
    Err(OpError::attribute("output_datatype", format!("{ty}; allowed are {}", Types::NUMERIC)))
}

fn window(a: &AttributeReader<'_>, shape: WindowShape) -> Result<Arc<dyn Operator>, OpError> {
    Ok(Arc::new(Window { shape, periodic: a.flag("periodic", true)?, ty: output_type(a)? }))
}
const SIZE: &[(&str, Types)] = &[("T1", Types::INDEX)];
pub(super) const DECLARATIONS: &[Declaration] = &[
Declaration::new("HannWindow", &[17], "size:T1 -> output:any", SIZE, |a| window(a, WindowShape::Hann))
        .shape_inputs(&[0]),
Declaration::new("HammingWindow", &[17], "size:T1 -> output:any", SIZE, |a| window(a, WindowShape::Hamming))
        .shape_inputs(&[0]),
Declaration::new("BlackmanWindow", &[17], "size:T1 -> output:any", SIZE, |a| {
        window(a, WindowShape::Blackman)
    })
    .shape_inputs(&[0]),
Declaration::new(
        "MelWeightMatrix",
        &[17],
        "num_mel_bins:T1, dft_length:T1, sample_rate:T1, lower_edge_hertz:T2, upper_edge_hertz:T2 -> output:any",
        &[("T1", Types::INDEX), ("T2", Types::FLOAT)],
        |a| Ok(Arc::new(MelWeightMatrix { ty: output_type(a)? })),
    )
    .shape_inputs(&[0, 1]),
];
