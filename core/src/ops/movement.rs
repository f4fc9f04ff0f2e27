//! Operators that lay elements out anew: Transpose, Expand, Tile, DepthToSpace, SpaceToDepth, Trilu.

use std::sync::Arc;

use crate::graph::Dim;
use crate::tensor::ElementType::{self, F16, F32, F64};

use super::int_list::IntList;
use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types, normalize_axis};

#[derive(Clone, Debug, PartialEq)]
pub enum Movement {
    /// Output axis `i` is input axis `perm[i]`; without `perm` the axes are reversed.
    Transpose { perm: Option<Vec<i64>> },
    /// Broadcasts with the shape that input 1 gives.
    Expand,
    /// Repeats each axis as often as input 1 says.
    Tile,
    /// Tile of opset 1: input 1 copies along the axis in input 2, which hold floats.
    TileAxis,
    /// Moves blocks of channels into space; `column_row_depth` is the mode CRD.
    DepthToSpace { block: usize, column_row_depth: bool },
    /// Moves blocks of space into channels; `column_row_depth` is the mode CRD.
    SpaceToDepth { block: usize, column_row_depth: bool },
    /// Keeps the upper (or lower) triangle of matrices, zero elsewhere; input 1 shifts the diagonal.
    Trilu { upper: bool },
}

impl Movement {
    /// The permutation of Transpose for an input of this rank.
    pub fn permutation(perm: Option<&[i64]>, rank: usize) -> Result<Vec<usize>, OpError> {
        let Some(perm) = perm else { return Ok((0..rank).rev().collect()) };
        let axes = super::int_list::unique_axes(perm, rank)
            .map_err(|e| OpError::attribute("perm", format!("{perm:?} is no permutation: {e}")))?;
        if axes.len() == rank {
            Ok(axes)
        } else {
            Err(OpError::attribute("perm", format!("{perm:?} has not the {rank} axes of the input")))
        }
    }
}

impl Operator for Movement {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        match self {
            Movement::Transpose { perm } => {
                match (cx.shape(0), perm) {
                    (Some(shape), _) => {
                        let perm = Movement::permutation(perm.as_deref(), shape.len())?;
                        cx.set_shape(0, perm.iter().map(|&p| shape[p].clone()).collect());
                        if shape.len() <= 1 {
                            cx.set_elements(0, cx.ints(0));
                        }
                    }
                    (None, Some(perm)) => cx.set_rank(0, perm.len()),
                    (None, None) => {}
                }
                Ok(())
            }
            Movement::Expand => expand(cx),
            Movement::Tile => tile(cx),
            Movement::TileAxis => tile_axis(cx),
            Movement::DepthToSpace { block, .. } => depth_to_space(cx, *block),
            Movement::SpaceToDepth { block, .. } => space_to_depth(cx, *block),
            Movement::Trilu { .. } => {
                let Some(shape) = cx.shape(0) else { return Ok(()) };
                if shape.len() < 2 {
                    let reason = format!("its rank is {}; at least 2 is needed for matrices", shape.len());
                    return Err(cx.input_error(0, reason));
                }
                cx.set_shape(0, shape.to_vec());
                Ok(())
            }
        }
    }
}

fn expand(cx: &mut Infer<'_>) -> Result<(), OpError> {
    let target = match cx.ints(1) {
        Some(target) => target,
        None => match cx.shape(1) {
            Some([n]) if n.known().is_some() => (0..n.known().unwrap_or(0)).map(|_| cx.unknown()).collect(),
            _ => return Ok(()),
        },
    };
    if let Some(d) = target.iter().find(|d| d.known().is_some_and(|d| d < 0)) {
        return Err(cx.input_error(1, format!("{d} is no dimension; allowed are 0 and above")));
    }
    let Some(shape) = cx.shape(0) else { return Ok(()) };
    let shape = cx.broadcast_with(1, shape, &target)?;
    // A scalar spread over a vector is still shape arithmetic when the length is known.
    let one = cx.ints(0).filter(|e| e.len() == 1);
    let count = super::shape::product(&shape).known();
    if let (Some(one), Some(n @ 0..=64), true) = (one, count, shape.len() <= 1) {
        cx.set_elements(0, Some(vec![one[0].clone(); n as usize]));
    }
    cx.set_shape(0, shape);
    Ok(())
}

fn tile(cx: &mut Infer<'_>) -> Result<(), OpError> {
    let Some(shape) = cx.shape(0) else { return Ok(()) };
    let Some(repeats) = cx.ints(1) else {
        cx.set_rank(0, shape.len());
        return Ok(());
    };
    if repeats.len() != shape.len() {
        let reason = format!("it has {} numbers; the input has {} axes", repeats.len(), shape.len());
        return Err(cx.input_error(1, reason));
    }
    if let Some(r) = repeats.iter().find(|r| r.known().is_some_and(|r| r < 0)) {
        return Err(cx.input_error(1, format!("{r} is no number of repeats; allowed are 0 and above")));
    }
    cx.set_shape(0, shape.iter().zip(&repeats).map(|(d, r)| d.mul(r)).collect());
    Ok(())
}

fn tile_axis(cx: &mut Infer<'_>) -> Result<(), OpError> {
    let Some(shape) = cx.shape(0) else { return Ok(()) };
    let lists = [IntList::Floats(1), IntList::Floats(2)].map(|list| list.known(cx));
    let [Some(tiles), Some(axis)] = lists else {
        cx.set_rank(0, shape.len());
        return Ok(());
    };
    let (&[tiles], &[axis]) = (&tiles[..], &axis[..]) else {
        return Err(cx.input_error(1, "tiles and axis hold one number each"));
    };
    if tiles < 0 {
        return Err(cx.input_error(1, format!("{tiles} is no number of repeats; allowed are 0 and above")));
    }
    let axis = normalize_axis("axis", axis, shape.len())?;
    let mut tiled = shape.to_vec();
    tiled[axis] = tiled[axis].mul(&tiles.into());
    cx.set_shape(0, tiled);
    Ok(())
}

fn depth_to_space(cx: &mut Infer<'_>, block: usize) -> Result<(), OpError> {
    let Some(shape) = cx.shape_of_rank(0, 4)? else {
        cx.set_rank(0, 4);
        return Ok(());
    };
    let b = Dim::from(block);
    let square = b.mul(&b);
    if let (Some(c), Some(s)) = (shape[1].known(), square.known())
        && c % s != 0
    {
        return Err(cx.input_error(0, format!("its {c} channels are not divisible by blocksize² = {s}")));
    }
    let channels = shape[1].floor_div(&square);
    cx.set_shape(0, vec![shape[0].clone(), channels, shape[2].mul(&b), shape[3].mul(&b)]);
    Ok(())
}

fn space_to_depth(cx: &mut Infer<'_>, block: usize) -> Result<(), OpError> {
    let Some(shape) = cx.shape_of_rank(0, 4)? else {
        cx.set_rank(0, 4);
        return Ok(());
    };
    let b = Dim::from(block);
    for (name, d) in [("height", &shape[2]), ("width", &shape[3])] {
        if d.known().is_some_and(|d| d % block as i64 != 0) {
            return Err(cx.input_error(0, format!("its {name} {d} is not divisible by blocksize {block}")));
        }
    }
    let (h, w) = (shape[2].floor_div(&b), shape[3].floor_div(&b));
    cx.set_shape(0, vec![shape[0].clone(), shape[1].mul(&b).mul(&b), h, w]);
    Ok(())
}

fn block_size(a: &super::AttributeReader<'_>) -> Result<usize, OpError> {
    let block = a.required_int("blocksize")?;
    usize::try_from(block).ok().filter(|b| (1..=1 << 20).contains(b)).ok_or_else(|| {
        OpError::attribute("blocksize", format!("{block} is not allowed; it must be 1 or more"))
    })
}

const T: &[(&str, Types)] = &[("T", Types::TENSOR)];
const MODES: &[(&str, bool)] = &[("DCR", false), ("CRD", true)];

/// In opset 1 the number of copies is a float.
const TILE_TYPES: &[(&str, Types)] =
    &[("T", Types::TENSOR), ("T1", Types::of(&[ElementType::I64, F32, F64, F16]))];

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("Transpose", &[1, 13, 21, 23, 24, 25], "data:T -> transposed:T", T, |a| {
        Ok(Arc::new(Movement::Transpose { perm: a.ints("perm")?.map(<[i64]>::to_vec) }))
    }),
    Declaration::new("Expand", &[8, 13], "input:T, shape:int64 -> output:T", T, |_| {
        Ok(Arc::new(Movement::Expand))
    })
    .shape_inputs(&[1]),
    Declaration::new("Tile", &[1, 6, 13], "input:T, repeats:T1, axis?:T -> output:T", TILE_TYPES, |a| {
        if a.opset() >= 6 && a.inputs() > 2 {
            return Err(OpError::Unknown("it has 3 inputs, where Tile takes 2 since opset 6".into()));
        }
        Ok(Arc::new(if a.opset() < 6 { Movement::TileAxis } else { Movement::Tile }))
    })
    .shape_inputs(&[1, 2]),
    Declaration::new("DepthToSpace", &[1, 11, 13, 28], "input:T -> output:T", T, |a| {
        let column_row_depth = a.opset() >= 11 && a.choice("mode", "DCR", MODES)?;
        Ok(Arc::new(Movement::DepthToSpace { block: block_size(a)?, column_row_depth }))
    }),
    Declaration::new("SpaceToDepth", &[1, 13, 28], "input:T -> output:T", T, |a| {
        let column_row_depth = a.opset() >= 28 && a.choice("mode", "DCR", MODES)?;
        Ok(Arc::new(Movement::SpaceToDepth { block: block_size(a)?, column_row_depth }))
    }),
    Declaration::new("Trilu", &[14], "input:T, k?:int64 -> output:T", T, parse_trilu),
    Declaration::new("Trilu", &[1], "X:T, k?:int64 -> Y:T", T, parse_trilu).domain("com.microsoft"),
];

fn parse_trilu(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    Ok(Arc::new(Movement::Trilu { upper: a.flag("upper", true)? }))
}

/// The axis of an input of this rank, for operators that read it from an attribute named `axis`.
pub fn axis_of(axis: i64, rank: usize) -> Result<usize, OpError> {
    normalize_axis("axis", axis, rank)
}
