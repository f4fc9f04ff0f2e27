//! Operations of one lane, made into operations of all lanes of a wave.
//!
//! A table of instructions names each operation as a closure from values to a value. Here it becomes a loop over lanes,
//! compiled once for each level of the host's vector instructions, and the best that the host has is chosen.

use super::types::{Lane, Type};

/// A loop over the lanes of a wave.
pub type Loop = fn(&mut Rows<'_>);

/// What a loop reads and writes. A row of a value of 64 bits is followed by that of its upper halves.
pub struct Rows<'a> {
    pub sources: [&'a [u32]; 3],
    pub destination: &'a mut [u32; 128],
    /// A bit for each lane: what a select or a carry reads.
    pub bits: u64,
    /// A bit for each lane: the carry, or what a comparison gives.
    pub result_bits: u64,
    /// 32 or 64.
    pub lanes: usize,
}

/// What an instruction computes in each lane.
#[derive(Clone, Copy)]
pub struct Kernel {
    pub run: Loop,
    /// The same when the instruction has CLAMP, where that is not a bound of the result.
    pub clamped: Option<Loop>,
    pub inputs: &'static [Type],
    /// `None` where only bits are written.
    pub output: Option<Type>,
    /// Whether it reads a bit for each lane, as the source behind the others.
    pub reads_bits: bool,
    /// Whether it writes a bit for each lane.
    pub writes_bits: bool,
}

impl Kernel {
    /// With another loop for CLAMP.
    pub fn or_clamped(mut self, clamped: Kernel) -> Kernel {
        self.clamped = Some(clamped.run);
        self
    }
}

/// What an operation may ask about its lane.
#[derive(Clone, Copy)]
pub struct Here {
    pub lane: u32,
    pub bit: bool,
}

/// One source.
pub fn map1<A: Lane, O: Lane>(f: impl Fn(A) -> O + Copy + Send + Sync + 'static) -> Kernel {
    Kernel {
        inputs: const { &[A::TYPE] },
        ..value(choose(move |a: A, _: u32, _: u32, _| (f(a), false)), O::TYPE)
    }
}

/// Two sources.
pub fn map2<A: Lane, B: Lane, O: Lane>(f: impl Fn(A, B) -> O + Copy + Send + Sync + 'static) -> Kernel {
    Kernel {
        inputs: const { &[A::TYPE, B::TYPE] },
        ..value(choose(move |a: A, b: B, _: u32, _| (f(a, b), false)), O::TYPE)
    }
}

/// Three sources.
pub fn map3<A: Lane, B: Lane, C: Lane, O: Lane>(
    f: impl Fn(A, B, C) -> O + Copy + Send + Sync + 'static,
) -> Kernel {
    Kernel {
        inputs: const { &[A::TYPE, B::TYPE, C::TYPE] },
        ..value(choose(move |a: A, b: B, c: C, _| (f(a, b, c), false)), O::TYPE)
    }
}

/// Two sources and the lane's number.
pub fn map2_with_lane<A: Lane, B: Lane, O: Lane>(
    f: impl Fn(A, B, u32) -> O + Copy + Send + Sync + 'static,
) -> Kernel {
    Kernel {
        inputs: const { &[A::TYPE, B::TYPE] },
        ..value(choose(move |a: A, b: B, _: u32, here: Here| (f(a, b, here.lane), false)), O::TYPE)
    }
}

/// Two sources and a bit.
pub fn select2<A: Lane, B: Lane, O: Lane>(
    f: impl Fn(A, B, bool) -> O + Copy + Send + Sync + 'static,
) -> Kernel {
    Kernel {
        inputs: const { &[A::TYPE, B::TYPE] },
        reads_bits: true,
        ..value(choose(move |a: A, b: B, _: u32, here: Here| (f(a, b, here.bit), false)), O::TYPE)
    }
}

/// Three sources and a bit of VCC, which the instruction does not name.
pub fn select3<A: Lane, B: Lane, C: Lane, O: Lane>(
    f: impl Fn(A, B, C, bool) -> O + Copy + Send + Sync + 'static,
) -> Kernel {
    Kernel {
        inputs: const { &[A::TYPE, B::TYPE, C::TYPE] },
        reads_bits: true,
        ..value(choose(move |a: A, b: B, c: C, here: Here| (f(a, b, c, here.bit), false)), O::TYPE)
    }
}

/// Two sources and a carry in; a value and a carry.
pub fn carry2<A: Lane, B: Lane, O: Lane>(
    f: impl Fn(A, B, bool) -> (O, bool) + Copy + Send + Sync + 'static,
) -> Kernel {
    Kernel {
        inputs: const { &[A::TYPE, B::TYPE] },
        reads_bits: true,
        writes_bits: true,
        ..value(choose(move |a: A, b: B, _: u32, here: Here| f(a, b, here.bit)), O::TYPE)
    }
}

/// Two sources; a value and a carry.
pub fn carry_out2<A: Lane, B: Lane, O: Lane>(
    f: impl Fn(A, B) -> (O, bool) + Copy + Send + Sync + 'static,
) -> Kernel {
    Kernel {
        inputs: const { &[A::TYPE, B::TYPE] },
        writes_bits: true,
        ..value(choose(move |a: A, b: B, _: u32, _| f(a, b)), O::TYPE)
    }
}

/// Three sources; a value and a bit.
pub fn carry3<A: Lane, B: Lane, C: Lane, O: Lane>(
    f: impl Fn(A, B, C) -> (O, bool) + Copy + Send + Sync + 'static,
) -> Kernel {
    Kernel {
        inputs: const { &[A::TYPE, B::TYPE, C::TYPE] },
        writes_bits: true,
        ..value(choose(move |a: A, b: B, c: C, _| f(a, b, c)), O::TYPE)
    }
}

/// Two sources; a bit.
pub fn compare<A: Lane, B: Lane>(f: impl Fn(A, B) -> bool + Copy + Send + Sync + 'static) -> Kernel {
    let run = choose(move |a: A, b: B, _: u32, _| (0u32, f(a, b)));
    let inputs = const { &[A::TYPE, B::TYPE] };
    Kernel { run, clamped: None, inputs, output: None, reads_bits: false, writes_bits: true }
}

fn value(run: Loop, output: Type) -> Kernel {
    Kernel { run, clamped: None, inputs: &[], output: Some(output), reads_bits: false, writes_bits: false }
}

/// The loop of an operation for the best vector instructions that the host has.
fn choose<A: Lane, B: Lane, C: Lane, O: Lane, F>(_: F) -> Loop
where
    F: Fn(A, B, C, Here) -> (O, bool) + Copy,
{
    const { assert!(size_of::<F>() == 0, "an operation captures nothing") };
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("fma")
        {
            // SAFETY: the processor has the features.
            return |rows| unsafe { avx512::<A, B, C, O, F>(rows) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the processor has the features.
            return |rows| unsafe { avx2::<A, B, C, O, F>(rows) };
        }
    }
    portable::<A, B, C, O, F>
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,popcnt,lzcnt")]
fn avx512<A: Lane, B: Lane, C: Lane, O: Lane, F>(rows: &mut Rows<'_>)
where
    F: Fn(A, B, C, Here) -> (O, bool) + Copy,
{
    body::<A, B, C, O, F>(rows);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,popcnt,lzcnt")]
fn avx2<A: Lane, B: Lane, C: Lane, O: Lane, F>(rows: &mut Rows<'_>)
where
    F: Fn(A, B, C, Here) -> (O, bool) + Copy,
{
    body::<A, B, C, O, F>(rows);
}

fn portable<A: Lane, B: Lane, C: Lane, O: Lane, F>(rows: &mut Rows<'_>)
where
    F: Fn(A, B, C, Here) -> (O, bool) + Copy,
{
    body::<A, B, C, O, F>(rows);
}

/// Lanes that are computed together: a vector register of 512 bits.
const TOGETHER: usize = 16;

#[inline(always)]
fn body<A: Lane, B: Lane, C: Lane, O: Lane, F>(rows: &mut Rows<'_>)
where
    F: Fn(A, B, C, Here) -> (O, bool) + Copy,
{
    // SAFETY: the type has no size, so that a value of it is made of nothing; `choose` had one.
    let f = unsafe { std::ptr::NonNull::<F>::dangling().read() };
    let (low, high) = rows.destination.split_at_mut(rows.lanes);
    rows.result_bits = 0;
    for at in (0..rows.lanes).step_by(TOGETHER) {
        let (a_low, a_high) = chunk::<A>(rows.sources[0], rows.lanes, at);
        let (b_low, b_high) = chunk::<B>(rows.sources[1], rows.lanes, at);
        let (c_low, c_high) = chunk::<C>(rows.sources[2], rows.lanes, at);
        let to_low: &mut [u32; TOGETHER] =
            (&mut low[at..at + TOGETHER]).try_into().unwrap_or_else(|_| unreachable!());
        let mut to_high = [0; TOGETHER];
        let mut bits = [0u32; TOGETHER];
        for i in 0..TOGETHER {
            let here = Here { lane: (at + i) as u32, bit: rows.bits >> (at + i) & 1 != 0 };
            let (value, bit) = f(
                A::read(a_low[i], a_high[i]),
                B::read(b_low[i], b_high[i]),
                C::read(c_low[i], c_high[i]),
                here,
            );
            (to_low[i], to_high[i]) = value.write();
            bits[i] = u32::from(bit) << i;
        }
        if O::TYPE.registers() == 2 {
            high[at..at + TOGETHER].copy_from_slice(&to_high);
        }
        rows.result_bits |= u64::from(bits.iter().fold(0, |all, bit| all | bit)) << at;
    }
}

/// Sixteen lanes of a source: its words, and its upper words where it has any.
#[inline(always)]
fn chunk<T: Lane>(row: &[u32], lanes: usize, at: usize) -> (&[u32; TOGETHER], &[u32; TOGETHER]) {
    let words = |at: usize| -> &[u32; TOGETHER] { row[at..].first_chunk().unwrap_or(&[0; TOGETHER]) };
    if T::TYPE.registers() == 2 { (words(at), words(at + lanes)) } else { (words(at), &[0; TOGETHER]) }
}
