//! Transpose, Expand, Tile, DepthToSpace, SpaceToDepth and Trilu.

use crate::ops::OpError;
use crate::ops::int_list::IntList;
use crate::ops::movement::Movement;
use crate::ops::normalize_axis;
use crate::tensor::Shape;

use crate::kernel::{Argument, CpuKernel, Entry, KernelContext, NodeContext, data_shape};
use crate::loops::item::Item;
use crate::loops::mover::{self, Inputs, Mover, Outputs};
use crate::loops::parallel::{GRAIN, split_mut};
use crate::loops::strided::{Strided, strides_of};
use crate::provider::ints::{Ints, required_ints, shape_input};

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("Transpose", build),
    Entry::new("Expand", build),
    Entry::new("Tile", build),
    Entry::new("DepthToSpace", build),
    Entry::new("SpaceToDepth", build),
    Entry::new("Trilu", build),
    Entry::new("Trilu", build).domain("com.microsoft"),
];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = node.op::<Movement>().clone();
    match op {
        Movement::Trilu { upper } => mover::build::<Movement, _>(node, Trilu { upper }),
        op => mover::build::<Movement, _>(node, Move(op)),
    }
}

/// Runs a strided copy from input 0 to output 0.
pub(super) fn run_strided<T: Item>(
    plan: &Strided,
    cx: &KernelContext<'_>,
    inputs: Inputs<'_>,
    outputs: &mut Outputs<'_, '_>,
) {
    if let (Some(input), Some(output)) = (inputs.items::<T>(0), outputs.items::<T>(0)) {
        plan.run(cx.pool, input, output);
    }
}

/// Every movement that is one strided copy. Bound: one read and one write of the output.
struct Move(Movement);

impl Mover for Move {
    type Plan = Strided;

    fn plan(&self, inputs: &[Option<Argument<'_>>], _: &[Option<&[usize]>]) -> Result<Strided, OpError> {
        let shape = data_shape(inputs)?;
        Ok(match &self.0 {
            Movement::Transpose { perm } => {
                Strided::permuted(shape, &Movement::permutation(perm.as_deref(), shape.len())?)
            }
            Movement::Expand => expand(shape, &shape_input(inputs, 1)?.unwrap_or_default()),
            Movement::Tile => tile(shape, &shape_input(inputs, 1)?.unwrap_or_default()),
            Movement::TileAxis => {
                let number = |i: usize| required_ints(&IntList::Floats(i), inputs);
                let (tiles, axis) = (number(1)?, number(2)?);
                let axis = normalize_axis("axis", axis.first().copied().unwrap_or(0), shape.len())?;
                let mut repeats = vec![1; shape.len()];
                repeats[axis] = tiles.first().copied().unwrap_or(1);
                tile(shape, &repeats)
            }
            &Movement::DepthToSpace { block: b, column_row_depth } => {
                let (n, c, h, w) = (shape[0], shape[1] / (b * b), shape[2], shape[3]);
                if column_row_depth {
                    Strided::permuted(&[n, c, b, b, h, w], &[0, 1, 4, 2, 5, 3])
                } else {
                    Strided::permuted(&[n, b, b, c, h, w], &[0, 3, 4, 1, 5, 2])
                }
            }
            &Movement::SpaceToDepth { block: b, column_row_depth } => {
                let blocks = [shape[0], shape[1], shape[2] / b, b, shape[3] / b, b];
                let perm = if column_row_depth { [0, 1, 3, 5, 2, 4] } else { [0, 3, 5, 1, 2, 4] };
                Strided::permuted(&blocks, &perm)
            }
            Movement::Trilu { .. } => return Err(OpError::Data("Trilu is no strided copy".to_owned())),
        })
    }

    fn run<T: Item>(
        &self,
        plan: &Strided,
        cx: &KernelContext<'_>,
        inputs: Inputs<'_>,
        outputs: &mut Outputs<'_, '_>,
    ) -> Result<(), OpError> {
        run_strided::<T>(plan, cx, inputs, outputs);
        Ok(())
    }
}

fn expand(shape: &[usize], target: &[i64]) -> Strided {
    let rank = shape.len().max(target.len());
    let strides = strides_of(shape);
    let mut dims = Shape::new();
    let mut steps = Vec::with_capacity(rank);
    for k in 0..rank {
        let own = (k + shape.len()).checked_sub(rank);
        let d = own.map_or(1, |i| shape[i]);
        let t = (k + target.len()).checked_sub(rank).map_or(1, |i| target[i] as usize);
        dims.push(if d == 1 { t } else { d });
        steps.push(own.filter(|_| d != 1).map_or(0, |i| strides[i]));
    }
    Strided::new(&dims, &steps, 0)
}

fn tile(shape: &[usize], repeats: &[i64]) -> Strided {
    let strides = strides_of(shape);
    let mut dims = Vec::with_capacity(shape.len() * 2);
    let mut steps = Vec::with_capacity(shape.len() * 2);
    for (k, &r) in repeats.iter().enumerate().take(shape.len()) {
        dims.extend([r as usize, shape[k]]);
        steps.extend([0, strides[k]]);
    }
    Strided::new(&dims, &steps, 0)
}

/// Rows and columns of the matrices.
struct Trilu {
    upper: bool,
}

impl Mover for Trilu {
    const IN_PLACE: &'static [usize] = &[0];
    type Plan = (usize, usize);

    fn plan(
        &self,
        inputs: &[Option<Argument<'_>>],
        _: &[Option<&[usize]>],
    ) -> Result<(usize, usize), OpError> {
        match data_shape(inputs)? {
            [.., rows, columns] => Ok((*rows, *columns)),
            shape => Err(OpError::Data(format!("the input has rank {}; at least 2 is needed", shape.len()))),
        }
    }

    fn run<T: Item>(
        &self,
        &(rows, columns): &(usize, usize),
        cx: &KernelContext<'_>,
        inputs: Inputs<'_>,
        outputs: &mut Outputs<'_, '_>,
    ) -> Result<(), OpError> {
        let k = match inputs.view(1) {
            None => 0,
            Some(view) => match Ints::required(Some(view), "k")? {
                k if k.len() == 1 => k.get(0),
                k => return Err(OpError::Data(format!("k has {} elements; allowed is 1", k.len()))),
            },
        };
        let input = inputs.items::<T>(0);
        let Some(output) = outputs.items::<T>(0) else { return Ok(()) };
        split_mut(cx.pool, output, columns, (GRAIN / columns.max(1)).max(1), |range, output| {
            for (r, y) in range.zip(output.chunks_exact_mut(columns)) {
                // The first column on or above the diagonal; above it for the lower triangle.
                let diagonal = ((r % rows) as i64).saturating_add(k).saturating_add(!self.upper as i64);
                let cut = diagonal.clamp(0, columns as i64) as usize;
                let (keep, clear) = if self.upper { (cut..columns, 0..cut) } else { (0..cut, cut..columns) };
                if let Some(input) = input {
                    let x = &input[r * columns..(r + 1) * columns];
                    y[keep.clone()].clone_from_slice(&x[keep]);
                }
                y[clear].fill(T::default());
            }
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::Attribute;
    use crate::tensor::{Tensor, Value};
    use crate::testing::{elements, run, t};

    /// 0, 1, 2, … as int32.
    fn count(shape: &[usize]) -> Option<Value> {
        t(shape, &(0..shape.iter().product::<usize>() as i32).collect::<Vec<_>>())
    }

    #[test]
    fn as_numpy() {
        let ints = |v: &[i64]| t(&[v.len()], v);
        type Case<'a> = (&'a str, Vec<Option<Value>>, &'a [usize], &'a [i32]);
        let cases: [Case<'_>; 8] = [
            // x[::-1, 2:0:-1]
            (
                "Slice",
                vec![count(&[2, 3]), ints(&[-1, 2]), ints(&[i64::MIN, 0]), None, ints(&[-1, -1])],
                &[2, 2],
                &[5, 4, 2, 1],
            ),
            ("Slice", vec![count(&[3]), ints(&[2]), ints(&[1])], &[0], &[]),
            ("Tile", vec![count(&[1, 2]), ints(&[2, 2])], &[2, 4], &[0, 1, 0, 1, 0, 1, 0, 1]),
            (
                "Expand",
                vec![count(&[2, 1]), ints(&[2, 1, 3])],
                &[2, 2, 3],
                &[0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1],
            ),
            ("Expand", vec![count(&[]), ints(&[0])], &[0], &[]),
            ("Trilu", vec![count(&[2, 3]), t(&[], &[1i64])], &[2, 3], &[0, 1, 2, 0, 0, 5]),
            ("Trilu", vec![count(&[2, 2]), t(&[], &[i64::MIN])], &[2, 2], &[0, 1, 2, 3]),
            ("Transpose", vec![count(&[2, 3])], &[3, 2], &[0, 3, 1, 4, 2, 5]),
        ];
        for (op, inputs, shape, want) in cases {
            let out = run(op, 21, &[], &inputs, 1).unwrap_or_else(|e| panic!("{op}: {e}"));
            assert_eq!(elements::<i32>(&out[0]), (shape.to_vec(), want.to_vec()), "{op}");
        }
    }

    #[test]
    fn the_first_slice_has_attributes() {
        let attributes = [
            ("starts", Attribute::Ints(vec![1, -2])),
            ("ends", Attribute::Ints(vec![9, -1])),
            ("axes", Attribute::Ints(vec![0, 1])),
        ];
        let out = run("Slice", 9, &attributes, &[count(&[2, 3])], 1).unwrap();
        assert_eq!(elements::<i32>(&out[0]), (vec![1, 1], vec![4]));
    }

    /// In opset 1, Tile and Split take their numbers as floats.
    #[test]
    fn the_first_versions_take_floats() {
        let x = t(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0]);
        let number = |n: f32| t(&[1], &[n]);
        let out = run("Tile", 1, &[], &[x.clone(), number(2.0), number(1.0)], 1).unwrap();
        let want = vec![1.0, 2.0, 1.0, 2.0, 3.0, 4.0, 3.0, 4.0];
        assert_eq!(elements::<f32>(&out[0]), (vec![2, 4], want));
        assert!(run("Tile", 1, &[], &[x.clone(), number(0.5), number(1.0)], 1).is_err());
        assert!(run("Tile", 6, &[], &[x.clone(), number(2.0), number(1.0)], 1).is_err());
        let x = t(&[3], &[1.0f32, 2.0, 3.0]);
        let out = run("Split", 1, &[], &[x.clone(), t(&[2], &[2.0f32, 1.0])], 2).unwrap();
        assert_eq!(elements::<f32>(&out[0]).1, [1.0, 2.0]);
        assert_eq!(elements::<f32>(&out[1]).1, [3.0]);
        let lengths = [("split", Attribute::Ints(vec![1, 2]))];
        let out = run("Split", 1, &lengths, &[x], 2).unwrap();
        assert_eq!(elements::<f32>(&out[1]).1, [2.0, 3.0]);
    }

    #[test]
    fn strings_move_as_numbers_do() {
        let words: Vec<String> = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        let x = Some(Value::Tensor(Tensor::from_strings(&[2, 2], words)));
        for (op, inputs, want) in [
            ("Transpose", vec![x.clone()], vec!["a", "c", "b", "d"]),
            ("Gather", vec![x.clone(), t(&[1], &[-1i64])], vec!["c", "d"]),
            ("Concat", vec![x.clone()], vec!["a", "b", "c", "d"]),
            ("Pad", vec![x, t(&[4], &[0i64, 1, 0, 0])], vec!["", "a", "b", "", "c", "d"]),
        ] {
            let attributes = [("axis", Attribute::Int(0))];
            let attributes = if matches!(op, "Gather" | "Concat") { &attributes[..] } else { &[] };
            let out = run(op, 13, attributes, &inputs, 1).unwrap();
            assert_eq!(out[0].as_tensor().unwrap().strings().unwrap(), want, "{op}");
        }
    }
}
