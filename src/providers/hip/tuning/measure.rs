//! Measures the candidates of a problem on operands of its own, and checks what they compute.

use crate::error::{Error, Result, fail};
use crate::hip::Stopwatch;
use crate::ops::OpError;
use crate::tensor::{ElementType, bf16, f16};

use super::super::buffer::MemoryStream;
use super::super::context::zeroed_counters;
use super::super::launch::{Addresses, LaunchPlan};
use super::super::{DeviceBuffer, Given, PlanBuilder, Provider};
use super::problem::{Problem, Span, Trial};

/// What was measured.
pub(super) struct Found {
    pub(super) index: usize,
    pub(super) microseconds: f64,
    pub(super) default_microseconds: f64,
    /// Candidates that were left out, with the reason.
    pub(super) dropped: Vec<String>,
}

/// Runs that estimate how long one takes.
const ESTIMATE: u32 = 3;
/// Runs that are measured when no time is given, and at most.
const FEW: u32 = 10;
const MANY: u32 = 100;
/// A candidate whose estimate is slower than the best by this factor is not measured.
const TOO_SLOW: f64 = 2.0;

/// The launches of each candidate, or why it has none.
pub(super) type Planned = Vec<std::result::Result<LaunchPlan, String>>;

/// Plans every candidate for the trial's operands. A candidate may be put together from what is chosen too,
/// which may be measured on the way.
pub(super) fn plan_all(provider: &Provider, problem: &Problem<'_>, count: usize) -> Result<Planned> {
    let plan = |index| {
        let mut plan = PlanBuilder::new(provider, Given::None);
        match (problem.plan)(index, &mut plan).and_then(|()| plan.finish()) {
            Ok(launches) => Ok(Ok(launches)),
            Err(OpError::Failed(e)) => Err(e),
            Err(e) => Ok(Err(e.to_string())),
        }
    };
    (0..count).map(plan).collect()
}

/// Measures each candidate for up to `limit_ms` milliseconds; 0 stands for a few runs. `Err` when nothing can
/// be measured.
pub(super) fn measure(
    provider: &Provider,
    trial: &Trial,
    names: &[String],
    planned: &Planned,
    limit_ms: u32,
) -> Result<Found> {
    let bench = Bench::new(provider, trial)?;
    let mut found = Found { index: 0, microseconds: 0.0, default_microseconds: 0.0, dropped: Vec::new() };
    let mut expected = Vec::new();
    for (index, (name, planned)) in names.iter().zip(planned).enumerate() {
        let best = (index > 0).then_some(found.microseconds);
        let time = match planned {
            Ok(launches) => bench.time(launches, &mut expected, best, limit_ms),
            Err(reason) => Err(Dropped::Candidate(reason.clone())),
        };
        match time {
            Ok(microseconds) if index == 0 => {
                (found.microseconds, found.default_microseconds) = (microseconds, microseconds);
            }
            Ok(microseconds) if microseconds < found.microseconds => {
                (found.index, found.microseconds) = (index, microseconds);
            }
            Ok(_) => {}
            Err(Dropped::Candidate(reason)) if index > 0 => found.dropped.push(format!("{name}: {reason}")),
            Err(Dropped::Candidate(reason)) => fail!(Device, "{name}: {reason}"),
            Err(Dropped::All(e)) => return Err(e),
        }
    }
    Ok(found)
}

/// Why a candidate has no time.
enum Dropped {
    /// It alone is at fault.
    Candidate(String),
    /// Nothing more can be measured.
    All(Error),
}

impl From<Error> for Dropped {
    fn from(e: Error) -> Self {
        Dropped::All(e)
    }
}

/// Operands on the device.
struct Bench<'p> {
    provider: &'p Provider,
    stream: &'p std::sync::Arc<MemoryStream>,
    watch: Stopwatch,
    inputs: Vec<DeviceBuffer>,
    output: DeviceBuffer,
    span: Span,
    errors: DeviceBuffer,
    counters: DeviceBuffer,
}

impl<'p> Bench<'p> {
    fn new(provider: &'p Provider, trial: &Trial) -> Result<Self> {
        let stream = provider.uploads();
        let inputs = trial
            .inputs
            .iter()
            .enumerate()
            .map(|(i, &span)| filled(provider, stream, span, i as u32 + 1))
            .collect::<Result<_>>()?;
        let output = provider.allocate(trial.output.elements * trial.output.ty.size(), stream)?;
        let errors = provider.allocate(size_of::<u32>(), stream)?;
        let watch = Stopwatch::new(provider.device())?;
        let counters = zeroed_counters(provider, stream)?;
        Ok(Bench { provider, stream, watch, inputs, output, span: trial.output, errors, counters })
    }

    /// Microseconds of one run. The first candidate's results become those that others must have.
    fn time(
        &self,
        launches: &LaunchPlan,
        expected: &mut Vec<f64>,
        best: Option<f64>,
        limit_ms: u32,
    ) -> std::result::Result<f64, Dropped> {
        let scratch = self.provider.allocate(launches.scratch, self.stream)?;
        let inputs: Vec<u64> = self.inputs.iter().map(DeviceBuffer::address).collect();
        let addresses = Addresses {
            inputs: &inputs,
            outputs: &[self.output.address()],
            scratch: scratch.address(),
            errors: self.errors.address(),
            counters: self.counters.address(),
        };
        let mut params = Vec::new();
        let mut submit = |runs: u32| {
            for _ in 0..runs {
                // SAFETY: the launches were planned for operands of these sizes, which stay until the
                // stream was waited for.
                unsafe { launches.submit(self.stream, &addresses, &mut params, |_| ())? };
            }
            Ok::<(), crate::hip::HipError>(())
        };
        // Numbers that nothing computes, so that what is not written differs from what should be there.
        // SAFETY: the output was just made with that many bytes.
        unsafe { self.stream.set_bytes(self.output.address(), 0xff, self.output.len()) }
            .map_err(Error::from)?;
        if let Err(e) = submit(1) {
            // Nothing of this candidate may be under way when its memory goes.
            self.stream.synchronize().map_err(Error::from)?;
            return Err(Dropped::Candidate(e.to_string()));
        }
        let results = self.sample()?;
        match best {
            None => *expected = results,
            Some(_) => compare(self.span.ty, &results, expected).map_err(Dropped::Candidate)?,
        }
        let mut time = |runs: u32| -> std::result::Result<f64, Dropped> {
            self.watch.start(self.stream).map_err(Error::from)?;
            submit(runs).map_err(Error::from)?;
            let milliseconds = self.watch.stop(self.stream).map_err(Error::from)?;
            Ok(f64::from(milliseconds) * 1000.0 / f64::from(runs))
        };
        let estimate = time(ESTIMATE)?;
        if best.is_some_and(|best| estimate > best * TOO_SLOW) {
            return Err(Dropped::Candidate(format!("too slow ({estimate:.1} µs)")));
        }
        let fitting = (f64::from(limit_ms) * 1000.0 / estimate.max(0.001)) as u32;
        time(if limit_ms == 0 { FEW } else { fitting.clamp(1, MANY) })
    }

    /// Elements of the output from all over it.
    fn sample(&self) -> Result<Vec<f64>> {
        /// Windows of so many elements.
        const WINDOWS: usize = 16;
        const WINDOW: usize = 4096;
        let Span { ty, elements } = self.span;
        let window = if elements <= WINDOWS * WINDOW { elements } else { WINDOW };
        let starts = if window == elements { 1 } else { WINDOWS };
        let mut bytes = vec![0u8; starts * window * ty.size()];
        for (i, part) in bytes.chunks_mut((window * ty.size()).max(1)).enumerate() {
            let first = (elements - window) * i / (starts - 1).max(1);
            let from = self.output.address() + (first * ty.size()) as u64;
            // SAFETY: the span is within the output; the bytes stay until the stream was waited for below.
            unsafe { self.stream.copy_to_host(part.as_mut_ptr(), from, part.len())? };
        }
        self.stream.synchronize()?;
        Ok(bytes.chunks_exact(ty.size()).map(|element| number(ty, element)).collect())
    }
}

/// Device memory with small numbers of both signs.
fn filled(
    provider: &Provider,
    stream: &std::sync::Arc<MemoryStream>,
    span: Span,
    seed: u32,
) -> Result<DeviceBuffer> {
    /// A prime, so that the rows of a large matrix differ.
    const PERIOD: usize = 1_048_573;
    let Span { ty, elements } = span;
    let mut bytes = Vec::with_capacity(elements.min(PERIOD) * ty.size());
    for i in 0..elements.min(PERIOD) as u32 {
        // From -127/128 to 1 for floating-point types, from -3 to 4 for integers.
        let random = (i + 1).wrapping_mul(2_654_435_761).wrapping_mul(seed * 2 + 1) >> 16;
        let x = f64::from((random & 255) as i32 - 127) / 128.0;
        let n = i64::from(random & 7) - 3;
        match ty {
            ElementType::F16 => bytes.extend(f16::from_f64(x).to_ne_bytes()),
            ElementType::BF16 => bytes.extend(bf16::from_f64(x).to_ne_bytes()),
            ElementType::F32 => bytes.extend((x as f32).to_ne_bytes()),
            ElementType::F64 => bytes.extend(x.to_ne_bytes()),
            _ if ty.size() == 8 => bytes.extend(n.to_ne_bytes()),
            _ if ty.size() == 4 => bytes.extend((n as i32).to_ne_bytes()),
            _ => bytes.extend(std::iter::repeat_n((random & 7) as u8, ty.size())),
        }
    }
    let memory = provider.allocate(elements * ty.size(), stream)?;
    let mut done = 0;
    while done < elements * ty.size() {
        let part = bytes.len().min(elements * ty.size() - done);
        // SAFETY: the span is within the memory; the bytes stay until the stream was waited for below.
        unsafe { stream.copy_to_device(memory.address() + done as u64, &bytes[..part])? };
        done += part;
    }
    stream.synchronize()?;
    Ok(memory)
}

/// One element, given its bytes, as a number.
fn number(ty: ElementType, bytes: &[u8]) -> f64 {
    let (two, four) = (|| bytes.first_chunk().copied(), || bytes.first_chunk().copied());
    let eight = || bytes.first_chunk().copied().unwrap_or_default();
    match ty {
        ElementType::F16 => f16::from_ne_bytes(two().unwrap_or_default()).to_f64(),
        ElementType::BF16 => bf16::from_ne_bytes(two().unwrap_or_default()).to_f64(),
        ElementType::F32 => f64::from(f32::from_ne_bytes(four().unwrap_or_default())),
        ElementType::F64 => f64::from_ne_bytes(eight()),
        ElementType::I64 | ElementType::U64 => i64::from_ne_bytes(eight()) as f64,
        ElementType::I32 | ElementType::U32 => f64::from(i32::from_ne_bytes(four().unwrap_or_default())),
        _ => f64::from(bytes[0]),
    }
}

/// How far two orders of the same sums may be apart, relative to the largest result: some roundings of the
/// type in which results are stored. Products in a shorter type than asked for are further away.
fn tolerance(ty: ElementType) -> f64 {
    match ty {
        ElementType::F32 => 2e-5,
        ElementType::F64 => 1e-12,
        ElementType::F16 => 4e-3,
        ElementType::BF16 => 3e-2,
        _ => 0.0,
    }
}

fn compare(ty: ElementType, results: &[f64], expected: &[f64]) -> std::result::Result<(), String> {
    let largest = expected.iter().copied().filter(|x| x.is_finite()).fold(0.0, |a: f64, x| a.max(x.abs()));
    let allowed = tolerance(ty) * largest;
    for (got, want) in results.iter().zip(expected) {
        let same = got == want || (got.is_nan() && want.is_nan()) || (got - want).abs() <= allowed;
        if !same {
            return Err(format!("wrong: it computes {got} where the default has {want}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_must_agree() {
        for (ty, got, want, same) in [
            (ElementType::F32, [1.0, 2.0], [1.00001, 2.0], true),
            (ElementType::F32, [1.0, 2.0], [1.001, 2.0], false),
            (ElementType::F16, [1.0, 2.0], [1.005, 2.0], true),
            (ElementType::F32, [f64::NAN, 2.0], [1.0, 2.0], false),
            (ElementType::F32, [1.0, 2.0], [f64::NAN, 2.0], false),
            (ElementType::F32, [f64::NAN, f64::INFINITY], [f64::NAN, f64::INFINITY], true),
            (ElementType::I64, [3.0, 4.0], [3.0, 5.0], false),
        ] {
            assert_eq!(compare(ty, &got, &want).is_ok(), same, "{ty}: {got:?} {want:?}");
        }
    }

    #[test]
    fn bytes_are_numbers() {
        assert_eq!(number(ElementType::BF16, &bf16::from_f32(1.5).to_ne_bytes()), 1.5);
        assert_eq!(number(ElementType::F64, &(-2.25f64).to_ne_bytes()), -2.25);
        assert_eq!(number(ElementType::I32, &(-7i32).to_ne_bytes()), -7.0);
        assert_eq!(number(ElementType::U8, &[200]), 200.0);
    }
}
