//! Recurrent layers. The input's share of all steps is one matrix product; each step then multiplies
//! the state by the recurrence weight. Directions run side by side. Layers of bfloat16 numbers multiply the state
//! rounded to such, and keep it as it is for the rest of a step.

mod ahead;
mod cell;
mod weight;

use std::marker::PhantomData;
use std::ops::Range;

use crate::ops::OpError;
use crate::ops::rnn::{Cell, Recurrent};
use crate::tensor::{TensorView, TensorViewMut, bf16, f16};

use crate::gemm::{Activate, Compute, InMemory, Matrix, Offsets, PackedB, Store};
use crate::kernel::{Argument, CpuKernel, Entry, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::number::dispatch;
use crate::loops::packing::Packing;
use crate::loops::parallel::Parts;
use crate::loops::simd::add;
use ahead::Ahead;
use cell::Functions;
use weight::{Recurrence, Weight, small_weights};

pub(super) const KERNELS: &[Entry] =
    &[Entry::new("RNN", build), Entry::new("GRU", build), Entry::new("LSTM", build)];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    dispatch!(node.input(0), T in [f32, f16, bf16, f64] => {
        let op = node.op::<Recurrent>().clone();
        let pack = |input: usize, rows: Range<usize>| -> Result<Option<Vec<PackedB<_>>>, OpError> {
            let Some(w) = node.constant(input).filter(|_| T::PACK) else { return Ok(None) };
            let w = w.aligned()?;
            let (directions, all_rows, k) = (w.shape()[0], w.shape()[1], w.shape()[2]);
            let rows = rows.start * all_rows / op.cell.gates()..rows.end * all_rows / op.cell.gates();
            let elements = w.view().slice::<T>();
            // Directions are counted, not cut off: they are there when they have no elements too.
            let pack = |direction: usize| {
                let first = direction * all_rows;
                let part = &elements[(first + rows.start) * k..(first + rows.end) * k];
                PackedB::of(part, true, 1, k, rows.len(), Packing::of(node), T::BFLOAT16)
            };
            Ok(Some((0..directions).map(pack).collect()))
        };
        let gates = op.cell.gates();
        let split = split_gates(op.cell);
        let w = pack(1, 0..gates)?;
        // Threads share the products of a reset state's gates earlier: there are two products a step.
        let small = if split == gates { SMALL } else { SMALL / 2 };
        let recurrence = |rows: Range<usize>| {
            let small = match node.constant(2) {
                _ if rows.is_empty() => return Ok(Recurrence { small: None, packed: None }),
                Some(r) if r.shape()[1] * r.shape()[2] < small => {
                    small_weights::<T>(r, gates, rows.clone(), Packing::of(node))?
                }
                _ => None,
            };
            let packed = if small.is_none() { pack(2, rows)? } else { None };
            Ok::<_, OpError>(Recurrence { small, packed })
        };
        let r = recurrence(0..split)?;
        let r_rest = recurrence(split..gates)?;
        Ok(CpuKernel::Tensor(Box::new(Layer::<T> { op, w, r, r_rest, _element: PhantomData })))
    }, else Err(node.no_kernel()))
}

/// Elements of a direction's recurrence weight up to which threads would only wait for each other.
const SMALL: usize = 1 << 20;
/// The gates whose recurrent product is of the state itself; the others' is of the reset state.
fn split_gates(cell: Cell) -> usize {
    match cell {
        Cell::Gru { linear_before_reset: false } => 2,
        cell => cell.gates(),
    }
}

struct Layer<T: Store> {
    op: Recurrent,
    /// The weights of each direction, when constant; the recurrence weight by its gates.
    w: Option<Vec<PackedB<T::Compute>>>,
    r: Recurrence<T::Compute>,
    r_rest: Recurrence<T::Compute>,
    _element: PhantomData<fn(T)>,
}

/// Sizes of a layer.
#[derive(Clone, Copy)]
struct Sizes {
    steps: usize,
    batch: usize,
    input: usize,
    hidden: usize,
    gates: usize,
}

impl Sizes {
    /// Elements of temporary memory of a direction: input's share, recurrent share, two states, and
    /// a third for what a cell needs, bias, peepholes.
    fn scratch(&self) -> [usize; 7] {
        let Sizes { steps, batch, hidden, gates, .. } = *self;
        let state = batch * hidden;
        [
            steps * batch * gates * hidden,
            batch * gates * hidden,
            state,
            state,
            state,
            2 * gates * hidden,
            3 * hidden,
        ]
    }
}

impl<T: Store<Compute: Activate>> Kernel for Layer<T> {
    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let (Some(x), Some(r)) = (&inputs[0], &inputs[2]) else { return Ok(Prepared::default()) };
        let (steps, batch) =
            if self.op.batch_first { (x.shape[1], x.shape[0]) } else { (x.shape[0], x.shape[1]) };
        let sizes =
            Sizes { steps, batch, input: x.shape[2], hidden: r.shape[2], gates: self.op.cell.gates() };
        let scratch = sizes.scratch().iter().sum::<usize>() * self.op.directions.len();
        Ok(Prepared { state: Some(Box::new(sizes)), scratch: scratch * size_of::<T::Compute>() })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let sizes = *cx.state::<Sizes>();
        let lengths = inputs.get(4).copied().flatten().map(|v| v.slice::<i32>());
        if let Some(&length) = lengths.into_iter().flatten().find(|&&l| l < 0 || l as usize > sizes.steps) {
            return Err(OpError::Data(format!(
                "sequence_lens has {length}; allowed is 0 to {}, the length of the sequences",
                sizes.steps
            )));
        }
        let mut slots = outputs.iter_mut();
        let mut shared = || slots.next().and_then(Option::as_mut).map(|out| Parts::new(out.slice::<T>()));
        let out = Outputs { y: shared(), h: shared(), c: shared() };
        if let Some(y) = &out.y
            && lengths.is_some()
        {
            // SAFETY: nothing else writes yet. Steps beyond a sequence's length stay zero.
            unsafe { y.get(0..y.len()) }.fill(T::default());
        }
        let per_direction = sizes.scratch().iter().sum::<usize>();
        let scratch = Parts::new(cx.scratch::<T::Compute>());
        cx.pool.for_each(self.op.directions.len(), &|d| {
            // SAFETY: each direction has its own part.
            let scratch = unsafe { scratch.get(d * per_direction..(d + 1) * per_direction) };
            self.direction(cx, d, sizes, inputs, lengths, &out, scratch);
        });
        Ok(())
    }

    fn consumes(&self, input: usize) -> bool {
        input == 1 && self.w.is_some() || input == 2 && self.r.is_constant()
    }
}

struct Outputs<'a, T> {
    y: Option<Parts<'a, T>>,
    h: Option<Parts<'a, T>>,
    c: Option<Parts<'a, T>>,
}

impl<T: Store<Compute: Activate>> Layer<T> {
    fn direction(
        &self,
        cx: &KernelContext<'_>,
        d: usize,
        sizes: Sizes,
        inputs: &[Option<TensorView<'_>>],
        lengths: Option<&[i32]>,
        out: &Outputs<'_, T>,
        scratch: &mut [T::Compute],
    ) {
        let Sizes { steps, batch, input, hidden: n, gates } = sizes;
        let view = |i: usize| inputs.get(i).copied().flatten().map(|v| v.slice::<T>());
        let mut rest = scratch;
        let [xw, recurrent, h, c, temporary, bias, peephole] = sizes.scratch().map(|len| {
            let (part, tail) = std::mem::take(&mut rest).split_at_mut(len);
            rest = tail;
            part
        });
        for (state, i) in [(&mut *h, 5), (&mut *c, 6)] {
            self.load_state(d, sizes, view(i), state);
        }
        match view(3) {
            Some(b) => load(&b[d * bias.len()..][..bias.len()], bias),
            None => bias.fill(T::Compute::default()),
        }
        let peephole = view(7).map(|p| {
            load(&p[d * 3 * n..][..3 * n], peephole);
            &*peephole
        });

        let r = view(2).map(|r| &r[d * gates * n * n..][..gates * n * n]);
        let split = split_gates(self.op.cell) * n;
        let r_rest = self.r_rest.weight(d, r.map(|r| &r[split * n..]));
        let r = self.r.weight(d, r.map(|r| &r[..split * n]));
        let functions = Functions {
            activations: &self.op.activations[d],
            clip: self.op.clip.map(<T::Compute as Activate>::of),
        };
        let backward = self.op.directions[d];
        let x = view(0).unwrap_or(&[]);
        let mut ahead = match &self.w {
            // Threads that have no direction of their own multiply inputs.
            Some(w) if r.small.is_some() && cx.pool.threads() <= self.op.directions.len() => {
                let length = lengths.and_then(|l| l.first()).map_or(steps, |&l| l as usize);
                Ahead::new(x, &w[d], sizes, split, length, backward)
            }
            _ => None,
        };
        let first = ahead.as_ref().map_or(0..steps * batch, |ahead| ahead.rows(0..ahead::STEPS));
        let w = view(1).map(|w| &w[d * gates * n * input..][..gates * n * input]);
        let w = Weight { small: None, packed: self.w.as_ref().map(|w| &w[d]), plain: w };
        let x =
            InMemory { matrix: Matrix::new(&x[first.start * input..], input), offsets: Offsets::Stride(0) };
        w.multiply(cx, x.left(), &mut xw[first.start * gates * n..], first.len(), gates * n, input);
        join_bias(bias, n, self.op.cell);
        add_bias(&mut xw[first.start * gates * n..first.end * gates * n], bias);

        let row_of = |t: usize, b: usize| if self.op.batch_first { b * steps + t } else { t * batch + b };
        for step in 0..steps {
            if let Some(ahead) = &mut ahead {
                let rows = ahead.complete(step, xw);
                add_bias(&mut xw[rows.start * gates * n..rows.end * gates * n], bias);
            }
            let length = |b: usize| lengths.map_or(steps, |l| l[b] as usize);
            let time = |b: usize| if backward { length(b) - 1 - step } else { step };
            let active = (0..batch).filter(|&b| step < length(b));
            let backwards = step % 2 == 1;
            let with = ahead.as_mut().map(|ahead| (ahead, &mut *xw));
            r.multiply_state(cx, h, recurrent, (batch, split, n), backwards, with);
            for b in active.clone() {
                let gates = &mut xw[row_of(time(b), b) * gates * n..][..gates * n];
                let product = &recurrent[b * split..][..split];
                let state = cell::State {
                    h: &mut h[b * n..][..n],
                    c: &mut c[b * n..][..n],
                    temporary: &mut temporary[b * n..][..n],
                };
                cell::advance(self.op.cell, &functions, gates, product, bias, peephole, state);
            }
            if split < gates * n {
                let out = &mut recurrent[..batch * n];
                let with = ahead.as_mut().map(|ahead| (ahead, &mut *xw));
                r_rest.multiply_state(cx, temporary, out, (batch, n, n), backwards, with);
                for b in active.clone() {
                    let gates = &mut xw[row_of(time(b), b) * gates * n..][..gates * n];
                    add(&mut gates[2 * n..], &recurrent[b * n..][..n]);
                    cell::gru_state(&functions, gates, &mut h[b * n..][..n]);
                }
            }
            if let Some(y) = &out.y {
                for b in active {
                    let t = time(b);
                    let directions = self.op.directions.len();
                    let row = match self.op.batch_first {
                        true => (b * steps + t) * directions + d,
                        false => (t * directions + d) * batch + b,
                    };
                    // SAFETY: a row belongs to one direction.
                    store(&h[b * n..][..n], unsafe { y.get(row * n..(row + 1) * n) });
                }
            }
        }
        self.store_states(d, sizes, h, c, out);
    }

    /// Writes the last states of a direction, of which there may be an output each.
    fn store_states(
        &self,
        d: usize,
        Sizes { batch, hidden: n, .. }: Sizes,
        h: &[T::Compute],
        c: &[T::Compute],
        out: &Outputs<'_, T>,
    ) {
        for (state, out) in [(h, &out.h), (c, &out.c)] {
            let Some(out) = out else { continue };
            for b in 0..batch {
                let row = self.state_row(d, b, batch);
                // SAFETY: a row belongs to one direction.
                store(&state[b * n..][..n], unsafe { out.get(row * n..(row + 1) * n) });
            }
        }
    }

    /// The row of a sequence's state in `initial_h` and `Y_h`.
    fn state_row(&self, d: usize, b: usize, batch: usize) -> usize {
        if self.op.batch_first { b * self.op.directions.len() + d } else { d * batch + b }
    }

    fn load_state(&self, d: usize, sizes: Sizes, initial: Option<&[T]>, state: &mut [T::Compute]) {
        let Some(initial) = initial else { return state.fill(T::Compute::default()) };
        for b in 0..sizes.batch {
            let row = self.state_row(d, b, sizes.batch);
            load(
                &initial[row * sizes.hidden..][..sizes.hidden],
                &mut state[b * sizes.hidden..][..sizes.hidden],
            );
        }
    }
}

/// Adds the bias of the recurrence to that of the input, where both are added to the gates. The recurrent bias of the
/// candidate of a GRU whose reset applies to the product is not.
fn join_bias<C: Compute + Activate>(bias: &mut [C], n: usize, cell: Cell) {
    let width = bias.len() / 2;
    let (input, recurrent) = bias.split_at_mut(width);
    let shared = match cell {
        Cell::Gru { linear_before_reset: true } => 2 * n,
        _ => width,
    };
    add(&mut input[..shared], &recurrent[..shared]);
}

/// Adds joined biases to rows of gates.
fn add_bias<C: Compute + Activate>(gates: &mut [C], bias: &[C]) {
    let width = bias.len() / 2;
    if width > 0 {
        gates.chunks_exact_mut(width).for_each(|row| add(row, &bias[..width]));
    }
}

fn load<T: Store>(from: &[T], to: &mut [T::Compute]) {
    T::load_all(from, to);
}

fn store<T: Store>(from: &[T::Compute], to: &mut [T]) {
    T::store_all(from, to);
}

#[cfg(test)]
mod tests;
