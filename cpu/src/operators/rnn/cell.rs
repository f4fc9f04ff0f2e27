//! One step of one sequence of a batch: from the gates' inputs to the new state.

use num_traits::Float;

use crate::ops::activation::Activation;
use crate::ops::rnn::Cell;

use crate::gemm::{Activate, activate};
use crate::loops::simd::add;

/// What the elementwise part of a cell needs besides its state.
pub(super) struct Functions<'a, C> {
    pub(super) activations: &'a [Activation],
    pub(super) clip: Option<C>,
}

/// What one sequence has from step to step, and room for one more.
pub(super) struct State<'a, C> {
    pub(super) h: &'a mut [C],
    pub(super) c: &'a mut [C],
    pub(super) temporary: &'a mut [C],
}

/// One step of a sequence: its gates have the input's part, to which the state's `product` comes.
pub(super) fn advance<C: Activate>(
    cell: Cell,
    functions: &Functions<'_, C>,
    gates: &mut [C],
    product: &[C],
    bias: &[C],
    peephole: Option<&[C]>,
    State { h, c, temporary }: State<'_, C>,
) {
    let n = h.len();
    match cell {
        Cell::Simple => {
            add(gates, product);
            simple(functions, gates, h);
        }
        Cell::Lstm { input_forget } => {
            add(gates, product);
            lstm(functions, input_forget, gates, peephole, h, c, temporary);
        }
        Cell::Gru { linear_before_reset: true } => {
            add(&mut gates[..2 * n], &product[..2 * n]);
            temporary.copy_from_slice(&product[2 * n..]);
            add(temporary, &bias[5 * n..]);
            gru_reset_product(functions, gates, temporary);
            gru_state(functions, gates, h);
        }
        Cell::Gru { linear_before_reset: false } => {
            add(&mut gates[..2 * n], product);
            gru_gates(functions, gates, h, temporary);
        }
    }
}

impl<C: Activate> Functions<'_, C> {
    /// Clips, then applies function `i`.
    fn apply(&self, i: usize, values: &mut [C]) {
        if let Some(clip) = self.clip {
            values.iter_mut().for_each(|x| *x = x.max(-clip).min(clip));
        }
        activate(self.activations[i], values);
    }
}

/// `h = f(gates)`.
fn simple<C: Activate>(f: &Functions<'_, C>, gates: &mut [C], h: &mut [C]) {
    f.apply(0, gates);
    h.copy_from_slice(gates);
}

/// Gates in the order input, output, forget, cell; `peephole` in the order input, output, forget.
/// `temporary` is as long as the state.
fn lstm<C: Activate>(
    f: &Functions<'_, C>,
    input_forget: bool,
    gates: &mut [C],
    peephole: Option<&[C]>,
    h: &mut [C],
    c: &mut [C],
    temporary: &mut [C],
) {
    let n = h.len();
    let [i, o, forget, cell] = parts::<C, 4>(gates, n);
    if let Some(p) = peephole {
        add_product(i, &p[..n], c);
        add_product(forget, &p[2 * n..3 * n], c);
    }
    f.apply(0, i);
    if input_forget {
        forget.iter_mut().zip(&*i).for_each(|(f, &i)| *f = C::one() - i);
    } else {
        f.apply(0, forget);
    }
    f.apply(1, cell);
    for (((c, &f), &i), &g) in c.iter_mut().zip(&*forget).zip(&*i).zip(&*cell) {
        *c = f * *c + i * g;
    }
    if let Some(p) = peephole {
        add_product(o, &p[n..2 * n], c);
    }
    f.apply(0, o);
    temporary.copy_from_slice(c);
    activate(f.activations[2], temporary);
    h.iter_mut().zip(&*o).zip(&*temporary).for_each(|((h, &o), &t)| *h = o * t);
}

/// The first half of a GRU step whose reset applies to the state: gates update and reset from
/// `gates`, and `reset_state = reset · h`.
fn gru_gates<C: Activate>(f: &Functions<'_, C>, gates: &mut [C], h: &[C], reset_state: &mut [C]) {
    let n = h.len();
    let [update, reset, _] = parts::<C, 3>(gates, n);
    f.apply(0, update);
    f.apply(0, reset);
    reset_state.iter_mut().zip(&*reset).zip(h).for_each(|((y, &r), &h)| *y = r * h);
}

/// The second half: the new state from the update gate and the candidate's input.
pub(super) fn gru_state<C: Activate>(f: &Functions<'_, C>, gates: &mut [C], h: &mut [C]) {
    let n = h.len();
    let [update, _, candidate] = parts::<C, 3>(gates, n);
    f.apply(1, candidate);
    for ((h, &z), &g) in h.iter_mut().zip(&*update).zip(&*candidate) {
        *h = (C::one() - z) * g + z * *h;
    }
}

/// The part of a GRU step that adds `reset · recurrent` to the candidate's input, for the variant
/// whose reset applies to the product.
fn gru_reset_product<C: Activate>(f: &Functions<'_, C>, gates: &mut [C], recurrent: &[C]) {
    let n = recurrent.len();
    let [update, reset, candidate] = parts::<C, 3>(gates, n);
    f.apply(0, update);
    f.apply(0, reset);
    add_product(candidate, reset, recurrent);
}

fn add_product<C: Float>(y: &mut [C], a: &[C], b: &[C]) {
    y.iter_mut().zip(a).zip(b).for_each(|((y, &a), &b)| *y = *y + a * b);
}

/// The first `N` parts of `n` elements.
fn parts<C, const N: usize>(gates: &mut [C], n: usize) -> [&mut [C]; N] {
    let mut rest = gates;
    std::array::from_fn(|_| {
        let (part, tail) = std::mem::take(&mut rest).split_at_mut(n);
        rest = tail;
        part
    })
}
