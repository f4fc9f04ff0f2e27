//! Unique.

use crate::ops::OpError;
use crate::ops::movement::axis_of;
use crate::ops::unique::Unique;
use crate::tensor::{Bool, C64, C128, ElementType, Tensor, Value, ValueRef, bf16, f16};

use crate::kernel::{CpuKernel, Entry, KernelContext, ValueKernel};
use crate::loops::item::{Item, dispatch_item, items, shape_of, type_of};
use crate::loops::number::dispatch;
use crate::loops::order::Ordered;

pub(super) const KERNELS: &[Entry] =
    &[Entry::new("Unique", |node| Ok(CpuKernel::Value(Box::new(UniqueKernel(node.op::<Unique>().clone())))))];

struct UniqueKernel(Unique);

/// Groups of equal slices.
struct Groups {
    /// The first slice of each group, in the order of the output.
    first: Vec<i64>,
    counts: Vec<i64>,
    /// The group of each slice.
    of: Vec<i64>,
}

/// The input as `[outer, length, inner]`, where slices of the middle axis are compared.
#[derive(Clone, Copy)]
struct Layout {
    outer: usize,
    length: usize,
    inner: usize,
}

impl Layout {
    /// Where the elements of a slice lie.
    fn slice(self, i: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
        (0..self.outer).map(move |o| {
            let start = (o * self.length + i) * self.inner;
            start..start + self.inner
        })
    }
}

impl ValueKernel for UniqueKernel {
    fn run(&self, _: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let ty = type_of(inputs, 0)?;
        let shape = shape_of(inputs, 0)?;
        let axis = self.0.axis.map(|a| axis_of(a, shape.len())).transpose()?;
        let layout = match axis {
            None => Layout { outer: 1, length: shape.iter().product(), inner: 1 },
            Some(k) => Layout {
                outer: shape[..k].iter().product(),
                length: shape[k],
                inner: shape[k + 1..].iter().product(),
            },
        };
        let groups = match (ty, inputs[0].and_then(ValueRef::view)) {
            (ElementType::String, _) => group(layout, items::<String>(inputs, 0)?, self.0.sorted),
            (_, Some(view)) => dispatch!(
                Some(ty),
                T in [f32, f64, f16, bf16, u8, u16, u32, u64, i8, i16, i32, i64, Bool, C64, C128] =>
                    group(layout, view.slice::<T>(), self.0.sorted),
                else return Err(OpError::Unsupported(format!("Unique of elements of type {ty}")))
            ),
            _ => return Err(OpError::Data("input 0 is no tensor".to_owned())),
        };
        let n = groups.first.len();
        let mut result_shape = axis.map_or_else(|| vec![n], |_| shape.to_vec());
        if let Some(axis) = axis {
            result_shape[axis] = n;
        }
        let values = dispatch_item!(ty, T => {
            let data = items::<T>(inputs, 0)?;
            let mut result = Vec::with_capacity(layout.outer * n * layout.inner);
            for o in 0..layout.outer {
                for &i in &groups.first {
                    result.extend_from_slice(&data[(o * layout.length + i as usize) * layout.inner..][..layout.inner]);
                }
            }
            T::tensor(ty, &result_shape, result)?
        });
        let ints = |v: &[i64]| Ok::<_, OpError>(Value::Tensor(Tensor::from_slice(&[v.len()], v)?));
        Ok(vec![Value::Tensor(values), ints(&groups.first)?, ints(&groups.of)?, ints(&groups.counts)?])
    }
}

fn group<T: Ordered>(layout: Layout, data: &[T], sorted: bool) -> Groups {
    let element = |&a: &usize, &b: &usize| data[a].order(&data[b]);
    let slice = |&a: &usize, &b: &usize| {
        let pairs = layout.slice(a).zip(layout.slice(b));
        pairs
            .flat_map(|(x, y)| data[x].iter().zip(&data[y]))
            .map(|(x, y)| x.order(y))
            .find(|o| o.is_ne())
            .unwrap_or(std::cmp::Ordering::Equal)
    };
    let mut order: Vec<usize> = (0..layout.length).collect();
    // The sort is stable, so each group begins with its first occurrence.
    // One sort for all types: of each its own machine code would be some twenty kilobytes.
    let compare: &dyn Fn(&usize, &usize) -> std::cmp::Ordering =
        if layout.outer == 1 && layout.inner == 1 { &element } else { &slice };
    order.sort_by(compare);
    let mut groups: Vec<&[usize]> = order.chunk_by(|a, b| compare(a, b).is_eq()).collect();
    if !sorted {
        groups.sort_by_key(|group| group[0]);
    }
    let mut of = vec![0; layout.length];
    for (g, group) in groups.iter().enumerate() {
        group.iter().for_each(|&i| of[i] = g as i64);
    }
    Groups {
        first: groups.iter().map(|group| group[0] as i64).collect(),
        counts: groups.iter().map(|group| group.len() as i64).collect(),
        of,
    }
}
