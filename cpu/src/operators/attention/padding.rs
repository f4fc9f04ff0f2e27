//! Masks of com.microsoft's attention operators: a number is added to the scores of hidden keys, so that
//! a row without any visible key still has its softmax.

use crate::ops::OpError;
use crate::tensor::TensorView;

use crate::gemm::Activate;

/// Which keys count, for each sample.
#[derive(Clone, Copy)]
pub(super) struct Padding<'a> {
    form: Form<'a>,
    filter: f32,
}

#[derive(Clone, Copy)]
enum Form<'a> {
    /// Keys before `ends` and, where there are starts, from `starts` on.
    Range { ends: &'a [i32], starts: Option<&'a [i32]> },
    /// All keys: a mask of one column stands for none.
    All,
    /// Keys whose element is above 0; elements between samples and between queries.
    Each { data: &'a [i32], strides: [usize; 2] },
}

impl<'a> Padding<'a> {
    /// Reads a mask for `batch` samples of `queries` queries, the first at position `past` of `total`.
    pub(super) fn new(
        view: TensorView<'a>,
        batch: usize,
        past: usize,
        total: usize,
        filter: f32,
    ) -> Result<Self, OpError> {
        let data = view.slice::<i32>();
        let form = match *view.shape() {
            [n] if n == 2 * batch && batch > 0 => {
                Form::Range { ends: &data[..batch], starts: Some(&data[batch..]) }
            }
            [n] if n >= batch => Form::Range { ends: &data[..batch], starts: None },
            [_, 1] => Form::All,
            [_, n] if n == total => Form::Each { data, strides: [n, 0] },
            [_, queries, n] if n == total => Form::Each { data, strides: [queries * n, n] },
            [_, 1, queries, n] if n >= total && queries >= total => {
                Form::Each { data: &data[(past * n).min(data.len())..], strides: [queries * n, n] }
            }
            ref shape => {
                return Err(OpError::Data(format!("the mask's shape is {shape:?}; there are {total} keys")));
            }
        };
        Ok(Padding { form, filter })
    }

    /// Adds to the scores of a query from key `start`.
    pub(super) fn add<C: Activate>(&self, batch: usize, query: usize, start: usize, row: &mut [C]) {
        let filter = C::of(self.filter);
        match self.form {
            Form::Range { ends, starts } => {
                let at = |position: i32| (position.max(0) as usize).saturating_sub(start).min(row.len());
                let (first, last) = (starts.map_or(0, |starts| at(starts[batch])), at(ends[batch]));
                let hide = |x: &mut C| *x = *x + filter;
                row[last..].iter_mut().for_each(hide);
                row[..first.min(last)].iter_mut().for_each(hide);
            }
            Form::All => {}
            Form::Each { data, strides: [b, q] } => {
                let seen = &data[batch * b + query * q + start..][..row.len()];
                row.iter_mut().zip(seen).filter(|(_, seen)| **seen <= 0).for_each(|(x, _)| *x = *x + filter);
            }
        }
    }
}
