//! Embeddings with their normalisation, and the ban on repeated n-grams.

use std::marker::PhantomData;

use crate::ops::OpError;
use crate::ops::language::{EmbedLayerNorm, NgramRepeatBlock};
use crate::tensor::{TensorView, TensorViewMut, f16};

use crate::kernel::{CpuKernel, Entry, Kernel, KernelContext};
use crate::loops::number::dispatch;
use crate::loops::parallel::{GRAIN, Parts, split_mut};
use crate::loops::statistics::{Real, affine, moments};
use crate::loops::widen::Widen;

const DOMAIN: &str = "com.microsoft";

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("EmbedLayerNormalization", |node| {
        dispatch!(node.input(2), T in [f32, f16] => {
            Ok(CpuKernel::Tensor(Box::new(Embed::<T>(*node.op(), PhantomData))))
        }, else Err(node.no_kernel()))
    })
    .domain(DOMAIN),
    Entry::new("NGramRepeatBlock", |node| Ok(CpuKernel::Tensor(Box::new(Block(*node.op()))))).domain(DOMAIN),
];

struct Embed<T>(EmbedLayerNorm, PhantomData<fn(T)>);

impl<T: Widen<Wide: Real>> Kernel for Embed<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let input = |i: usize| inputs.get(i).copied().flatten();
        let mut slots = outputs.iter_mut().map(Option::as_mut);
        let mut slot = || slots.next().flatten();
        let (Some(y), counts, sum) = (slot(), slot(), slot()) else { return Ok(()) };
        let (steps, width) = (y.shape()[1], y.shape()[2]);
        let table = |i: usize| input(i).map(|view| view.slice::<T>());
        let ids = |i: usize| input(i).map(|view| view.slice::<i32>());
        let (Some(words), Some(gamma), Some(beta)) = (ids(0), table(5), table(6)) else { return Ok(()) };
        let positions = ids(8);
        for (name, ids, i) in
            [("input_ids", Some(words), 2), ("segment_ids", ids(1), 4), ("position_ids", positions, 3)]
        {
            check_ids(name, ids.unwrap_or(&[]), input(i))?;
        }
        let rows = input(3).map_or(0, |table| table.shape()[0]);
        if positions.is_none() && rows < steps {
            return Err(OpError::Data(format!("position_embedding has {rows} rows for {steps} positions")));
        }
        let position = |i: usize| match positions {
            Some(positions) => positions[i % positions.len()] as usize,
            None => i % steps,
        };
        let sum = sum.map(|sum| Parts::new(sum.slice::<T>()));
        split_mut(cx.pool, y.slice::<T>(), width, GRAIN / width.max(1) + 1, |range, y| {
            for (i, y) in range.zip(y.chunks_exact_mut(width)) {
                let row = |at: usize| at * width..(at + 1) * width;
                let parts = [
                    table(2).map(|table| &table[row(words[i] as usize)]),
                    table(3).map(|table| &table[row(position(i))]),
                    table(4).zip(ids(1)).map(|(table, ids)| &table[row(ids[i] as usize)]),
                ];
                for (k, y) in y.iter_mut().enumerate() {
                    let zero = T::Wide::of(0.0);
                    *y = T::down(parts.iter().flatten().fold(zero, |sum, part| sum + part[k].up()));
                }
                if let Some(sum) = &sum {
                    // SAFETY: each row belongs to one thread.
                    unsafe { sum.get(i * width..(i + 1) * width) }.copy_from_slice(y);
                }
                let (mean, spread) = moments(y);
                let factor = 1.0 / (spread + self.0.epsilon as f64).sqrt();
                affine(None, y, T::Wide::of(mean), T::Wide::of(factor), gamma, beta);
            }
        });
        if let Some(counts) = counts {
            let mask = ids(7);
            for (i, count) in counts.slice::<i32>().iter_mut().enumerate() {
                let row = mask.map_or(&[][..], |mask| &mask[i * steps..][..steps]);
                *count = row.iter().filter(|&&m| m == 1).count() as i32;
            }
        }
        Ok(())
    }
}

/// Refuses rows that a table does not have.
fn check_ids(name: &str, ids: &[i32], table: Option<TensorView<'_>>) -> Result<(), OpError> {
    let rows = table.map_or(0, |table| table.shape()[0]);
    match ids.iter().find(|&&id| id < 0 || id as usize >= rows) {
        Some(id) => Err(OpError::Data(format!("{name} has {id}; allowed is 0 to {}", rows as i64 - 1))),
        None => Ok(()),
    }
}

struct Block(NgramRepeatBlock);

impl Kernel for Block {
    fn run(
        &self,
        _cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(ids), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let (length, tokens, size) = (ids.shape()[1], y.shape()[1], self.0.size);
        if let Some(scores) = inputs[1] {
            y.slice::<f32>().copy_from_slice(scores.slice());
        }
        if length == 0 || tokens == 0 {
            return Ok(());
        }
        let samples = ids.slice::<i64>().chunks_exact(length);
        for (ids, scores) in samples.zip(y.slice::<f32>().chunks_exact_mut(tokens)) {
            let Some(tail) = (length + 1).checked_sub(size).map(|at| &ids[at..]) else { continue };
            for ngram in ids.windows(size).filter(|ngram| ngram.starts_with(tail)) {
                let token = ngram[size - 1];
                let score = usize::try_from(token).ok().and_then(|token| scores.get_mut(token));
                *score.ok_or_else(|| {
                    OpError::Data(format!("input_ids has {token}; allowed is 0 to {}", tokens - 1))
                })? = f32::NEG_INFINITY;
            }
        }
        Ok(())
    }

    fn in_place(&self) -> &[usize] {
        &[1]
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::Attribute;
    use crate::tensor::Value;
    use crate::testing::{checksum, elements, run_in, t};

    fn floats(k: usize, shape: &[usize]) -> Option<Value> {
        let element = |i| ((i * (7 + 2 * k) + k) % 13) as f32 / 8.0 - 0.75;
        t(shape, &(0..shape.iter().product()).map(element).collect::<Vec<_>>())
    }

    fn embed(words: [i32; 6], given: usize, segments: bool) -> Result<Vec<Value>, String> {
        let mut inputs = vec![
            t(&[2, 3], &words),
            t(&[2, 3], &[0, 1, 1, 1, 0, 0]).filter(|_| segments),
            floats(2, &[5, 4]),
            floats(3, &[4, 4]),
            floats(4, &[2, 4]).filter(|_| segments),
            floats(5, &[4]),
            floats(6, &[4]),
            t(&[2, 3], &[1, 1, 0, 1, 0, 1]),
            t(&[2, 3], &[2, 0, 3, 1, 1, 0]),
        ];
        inputs.truncate(given);
        let epsilon = [("epsilon", Attribute::Float(1e-5))];
        run_in("com.microsoft", "EmbedLayerNormalization", 1, &epsilon, &inputs, 3).map_err(|e| e.to_string())
    }

    #[test]
    fn embeds_and_normalises() {
        // Checksums of ONNX Runtime's rows and sums, and the lengths.
        for (given, segments, rows, lengths, sums) in
            [(9, true, -5.916_411, [2, 2], -11.0), (7, false, -9.437_72, [0, 0], -5.125)]
        {
            let out = embed([1, 4, 0, 2, 2, 3], given, segments).unwrap();
            assert!((checksum(&elements::<f32>(&out[0]).1) - rows).abs() < 1e-4);
            assert_eq!(elements::<i32>(&out[1]).1, lengths);
            assert!((checksum(&elements::<f32>(&out[2]).1) - sums).abs() < 1e-5);
        }
        for word in [-1, 5] {
            let error = embed([1, 4, word, 2, 2, 3], 9, true).unwrap_err();
            assert!(error.contains(&format!("input_ids has {word}; allowed is 0 to 4")), "{error}");
        }
    }

    #[test]
    fn repeated_ngrams_are_banned() {
        let ids = [1i64, 2, 3, 1, 2, 4, 4, 4, 4, 4, 0, 1, 2, 3, 4];
        let run = |ids: &[i64], size| {
            let inputs = [t(&[3, 5], ids), t(&[3, 5], &[0.0f32; 15])];
            run_in(
                "com.microsoft",
                "NGramRepeatBlock",
                1,
                &[("ngram_size", Attribute::Int(size))],
                &inputs,
                1,
            )
        };
        // Where ONNX Runtime's scores are −∞.
        for (size, want) in [(1, &[1, 2, 3, 9, 10, 11, 12, 13, 14][..]), (2, &[3, 9]), (3, &[3, 9]), (6, &[])]
        {
            let out = elements::<f32>(&run(&ids, size).unwrap()[0]).1;
            let banned: Vec<usize> = (0..15).filter(|&i| out[i] == f32::NEG_INFINITY).collect();
            assert_eq!(banned, want, "{size}");
        }
        let error = run(&[9; 15], 2).unwrap_err().to_string();
        assert!(error.contains("input_ids has 9; allowed is 0 to 4"), "{error}");
        assert!(run(&ids, 0).unwrap_err().to_string().contains("ngram_size"));
    }
}
