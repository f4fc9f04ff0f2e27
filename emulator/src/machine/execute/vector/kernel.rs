//! Operations of one lane, made into operations of all lanes of a wave.
//!
//! A table of instructions names each operation as a closure from values to a value. Here it becomes a loop over lanes,
//! compiled once for each level of the host's vector instructions, and the best that the host has is chosen.

#[cfg(target_arch = "x86_64")]
use crate::machine::native::{has_avx2, has_avx512};

use super::types::{Lane, Nothing, Type};

/// A loop over the lanes of a wave.
///
/// # Safety
/// The pointers of [`Rows`] are as it says.
pub type Loop = unsafe fn(&mut Rows);

/// What a loop reads and writes. A row of a value of 64 bits is followed by that of its upper halves.
///
/// The destination may be one of the sources, or share one of two rows with it: a lane reads what only it writes.
pub struct Rows {
    /// Rows of `lanes` words, or two of them, as the kernel's types say; null where there is no source.
    pub sources: [*const u32; 3],
    /// Likewise; null where only bits are written.
    pub destination: *mut u32,
    /// Lanes whose result is kept.
    pub written: u64,
    /// A bit for each lane: what a select or a carry reads.
    pub bits: u64,
    /// A bit for each lane: the carry, or what a comparison gives.
    pub result_bits: u64,
    /// 32 or 64.
    pub lanes: usize,
    /// Of results of 16 bits.
    pub placing: Placing,
}

/// Where a result of 16 bits goes in its register, and which bits of the register stay.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Placing {
    pub shift: u32,
    pub keep: u32,
}

impl Placing {
    /// In the low half, above which there are zeros.
    pub const WHOLE: Placing = Placing { shift: 0, keep: 0 };
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
        ..value(
            choose::<false, false, _, _, _, _, _>(move |a: A, _: Nothing, _: Nothing, _| (f(a), false)),
            O::TYPE,
        )
    }
}

/// Two sources.
pub fn map2<A: Lane, B: Lane, O: Lane>(f: impl Fn(A, B) -> O + Copy + Send + Sync + 'static) -> Kernel {
    Kernel {
        inputs: const { &[A::TYPE, B::TYPE] },
        ..value(
            choose::<false, false, _, _, _, _, _>(move |a: A, b: B, _: Nothing, _| (f(a, b), false)),
            O::TYPE,
        )
    }
}

/// Three sources.
pub fn map3<A: Lane, B: Lane, C: Lane, O: Lane>(
    f: impl Fn(A, B, C) -> O + Copy + Send + Sync + 'static,
) -> Kernel {
    Kernel {
        inputs: const { &[A::TYPE, B::TYPE, C::TYPE] },
        ..value(
            choose::<false, false, _, _, _, _, _>(move |a: A, b: B, c: C, _| (f(a, b, c), false)),
            O::TYPE,
        )
    }
}

/// Two sources and the lane's number.
pub fn map2_with_lane<A: Lane, B: Lane, O: Lane>(
    f: impl Fn(A, B, u32) -> O + Copy + Send + Sync + 'static,
) -> Kernel {
    Kernel {
        inputs: const { &[A::TYPE, B::TYPE] },
        ..value(
            choose::<false, false, _, _, _, _, _>(move |a: A, b: B, _: Nothing, here: Here| {
                (f(a, b, here.lane), false)
            }),
            O::TYPE,
        )
    }
}

/// Two sources and a bit.
pub fn select2<A: Lane, B: Lane, O: Lane>(
    f: impl Fn(A, B, bool) -> O + Copy + Send + Sync + 'static,
) -> Kernel {
    Kernel {
        inputs: const { &[A::TYPE, B::TYPE] },
        reads_bits: true,
        ..value(
            choose::<true, false, _, _, _, _, _>(move |a: A, b: B, _: Nothing, here: Here| {
                (f(a, b, here.bit), false)
            }),
            O::TYPE,
        )
    }
}

/// Three sources and a bit of VCC, which the instruction does not name.
pub fn select3<A: Lane, B: Lane, C: Lane, O: Lane>(
    f: impl Fn(A, B, C, bool) -> O + Copy + Send + Sync + 'static,
) -> Kernel {
    Kernel {
        inputs: const { &[A::TYPE, B::TYPE, C::TYPE] },
        reads_bits: true,
        ..value(
            choose::<true, false, _, _, _, _, _>(move |a: A, b: B, c: C, here: Here| {
                (f(a, b, c, here.bit), false)
            }),
            O::TYPE,
        )
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
        ..value(
            choose::<true, true, _, _, _, _, _>(move |a: A, b: B, _: Nothing, here: Here| f(a, b, here.bit)),
            O::TYPE,
        )
    }
}

/// Two sources; a value and a carry.
pub fn carry_out2<A: Lane, B: Lane, O: Lane>(
    f: impl Fn(A, B) -> (O, bool) + Copy + Send + Sync + 'static,
) -> Kernel {
    Kernel {
        inputs: const { &[A::TYPE, B::TYPE] },
        writes_bits: true,
        ..value(choose::<false, true, _, _, _, _, _>(move |a: A, b: B, _: Nothing, _| f(a, b)), O::TYPE)
    }
}

/// Three sources; a value and a bit.
pub fn carry3<A: Lane, B: Lane, C: Lane, O: Lane>(
    f: impl Fn(A, B, C) -> (O, bool) + Copy + Send + Sync + 'static,
) -> Kernel {
    Kernel {
        inputs: const { &[A::TYPE, B::TYPE, C::TYPE] },
        writes_bits: true,
        ..value(choose::<false, true, _, _, _, _, _>(move |a: A, b: B, c: C, _| f(a, b, c)), O::TYPE)
    }
}

/// Two sources; a bit.
pub fn compare<A: Lane, B: Lane>(f: impl Fn(A, B) -> bool + Copy + Send + Sync + 'static) -> Kernel {
    let run = choose::<false, true, _, _, _, _, _>(move |a: A, b: B, _: Nothing, _| (Nothing, f(a, b)));
    let inputs = const { &[A::TYPE, B::TYPE] };
    Kernel { run, clamped: None, inputs, output: None, reads_bits: false, writes_bits: true }
}

fn value(run: Loop, output: Type) -> Kernel {
    Kernel { run, clamped: None, inputs: &[], output: Some(output), reads_bits: false, writes_bits: false }
}

/// The loop of an operation for the best vector instructions that the host has. `READS` and `WRITES`: whether it reads and
/// writes a bit for each lane.
fn choose<const READS: bool, const WRITES: bool, A: Lane, B: Lane, C: Lane, O: Lane, F>(_: F) -> Loop
where
    F: Fn(A, B, C, Here) -> (O, bool) + Copy,
{
    const { assert!(size_of::<F>() == 0, "an operation captures nothing") };
    #[cfg(target_arch = "x86_64")]
    {
        if has_avx512() {
            return avx512::<READS, WRITES, A, B, C, O, F>;
        }
        if has_avx2() {
            return avx2::<READS, WRITES, A, B, C, O, F>;
        }
    }
    portable::<READS, WRITES, A, B, C, O, F>
}

/// # Safety
/// As [`Loop`]; the processor has the features.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,popcnt,lzcnt")]
unsafe fn avx512<const READS: bool, const WRITES: bool, A: Lane, B: Lane, C: Lane, O: Lane, F>(
    rows: &mut Rows,
) where
    F: Fn(A, B, C, Here) -> (O, bool) + Copy,
{
    // SAFETY: as the caller says.
    unsafe { body::<READS, WRITES, A, B, C, O, F>(rows) };
}

/// # Safety
/// As [`Loop`]; the processor has the features.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,popcnt,lzcnt")]
unsafe fn avx2<const READS: bool, const WRITES: bool, A: Lane, B: Lane, C: Lane, O: Lane, F>(rows: &mut Rows)
where
    F: Fn(A, B, C, Here) -> (O, bool) + Copy,
{
    // SAFETY: as the caller says.
    unsafe { body::<READS, WRITES, A, B, C, O, F>(rows) };
}

/// # Safety
/// As [`Loop`].
unsafe fn portable<const READS: bool, const WRITES: bool, A: Lane, B: Lane, C: Lane, O: Lane, F>(
    rows: &mut Rows,
) where
    F: Fn(A, B, C, Here) -> (O, bool) + Copy,
{
    // SAFETY: as the caller says.
    unsafe { body::<READS, WRITES, A, B, C, O, F>(rows) };
}

/// Lanes that are computed together: a vector register of 512 bits. They are all read before the first is written.
const TOGETHER: usize = 16;

/// # Safety
/// As [`Loop`].
#[inline(always)]
unsafe fn body<const READS: bool, const WRITES: bool, A: Lane, B: Lane, C: Lane, O: Lane, F>(rows: &mut Rows)
where
    F: Fn(A, B, C, Here) -> (O, bool) + Copy,
{
    // SAFETY: the type has no size, so that a value of it is made of nothing; `choose` had one.
    let f = unsafe { std::ptr::NonNull::<F>::dangling().read() };
    let lanes = rows.lanes;
    let mut result_bits = 0;
    for at in (0..lanes).step_by(TOGETHER) {
        // SAFETY: the rows have `lanes` words, or twice as many where the type has two registers.
        let (a, b, c) = unsafe {
            (
                load::<A>(rows.sources[0], lanes, at),
                load::<B>(rows.sources[1], lanes, at),
                load::<C>(rows.sources[2], lanes, at),
            )
        };
        let (mut low, mut high) = ([0; TOGETHER], [0; TOGETHER]);
        let mut bits = [0u32; TOGETHER];
        for i in 0..TOGETHER {
            let here = Here { lane: (at + i) as u32, bit: READS && rows.bits >> (at + i) & 1 != 0 };
            let (value, bit) =
                f(A::read(a.0[i], a.1[i]), B::read(b.0[i], b.1[i]), C::read(c.0[i], c.1[i]), here);
            (low[i], high[i]) = value.write();
            bits[i] = u32::from(bit) << i;
        }
        let written = (rows.written >> at) as u16;
        if O::TYPE.is_half() && rows.placing != Placing::WHOLE {
            // SAFETY: the destination has `lanes` words.
            let old = unsafe { rows.destination.add(at).cast::<[u32; TOGETHER]>().read_unaligned() };
            for i in 0..TOGETHER {
                low[i] = low[i] << rows.placing.shift | old[i] & rows.placing.keep;
            }
        }
        if O::TYPE.registers() >= 1 {
            // SAFETY: the destination has `lanes` words.
            unsafe { store(rows.destination.add(at), low, written) };
        }
        if O::TYPE.registers() == 2 {
            // SAFETY: the destination has twice as many.
            unsafe { store(rows.destination.add(lanes + at), high, written) };
        }
        if WRITES {
            result_bits |= u64::from(bits.iter().fold(0, |all, bit| all | bit)) << at;
        }
    }
    rows.result_bits = result_bits;
}

/// Sixteen lanes of a source: its words, and its upper words where it has any.
///
/// # Safety
/// The row has `lanes` words, or twice as many, as the type says, and `at` and the fifteen behind it are lanes.
#[inline(always)]
unsafe fn load<T: Lane>(row: *const u32, lanes: usize, at: usize) -> ([u32; TOGETHER], [u32; TOGETHER]) {
    let words = |at: usize| {
        // SAFETY: as the caller says.
        unsafe { row.add(at).cast::<[u32; TOGETHER]>().read_unaligned() }
    };
    match T::TYPE.registers() {
        0 => ([0; TOGETHER], [0; TOGETHER]),
        1 => (words(at), [0; TOGETHER]),
        _ => (words(at), words(at + lanes)),
    }
}

/// Writes the lanes whose bits are set.
///
/// # Safety
/// Sixteen words lie there.
#[inline(always)]
unsafe fn store(to: *mut u32, value: [u32; TOGETHER], written: u16) {
    let to = to.cast::<[u32; TOGETHER]>();
    if written == u16::MAX {
        // SAFETY: as the caller says.
        unsafe { to.write_unaligned(value) };
        return;
    }
    // SAFETY: as the caller says.
    let old = unsafe { to.read_unaligned() };
    let mut merged = [0; TOGETHER];
    for i in 0..TOGETHER {
        merged[i] = if written >> i & 1 != 0 { value[i] } else { old[i] };
    }
    // SAFETY: as the caller says.
    unsafe { to.write_unaligned(merged) };
}
