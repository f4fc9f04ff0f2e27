//! Functions of one byte by table. Bound: a byte read and a byte written; with AVX512_VBMI 64 bytes at a time, with AVX2 32.

use crate::ops::OpError;
use crate::ops::lookup::ENTRIES;
use crate::tensor::{TensorView, TensorViewMut};

#[cfg(target_arch = "x86_64")]
use crate::isa::{has_avx2, has_beyond_avx512};
use crate::kernel::{CpuKernel, Entry, Kernel, KernelContext, NodeContext};
use crate::loops::parallel::{GRAIN, split_mut};

pub(super) const KERNELS: &[Entry] = &[Entry::new("Lookup", build).domain("rukh")];

/// Writes the table's entry for each byte.
pub(crate) fn lookup(table: &[u8; ENTRIES], x: &[u8], y: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if has_beyond_avx512!("avx512vbmi") {
        // SAFETY: the machine has these instructions.
        return unsafe { avx512::lookup(table, x, y) };
    }
    #[cfg(target_arch = "x86_64")]
    if has_avx2() && x.len() >= avx2::FEWEST {
        // SAFETY: the machine has these instructions.
        return unsafe { avx2::lookup(table, x, y) };
    }
    y.iter_mut().zip(x).for_each(|(y, &x)| *y = table[x as usize]);
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::ENTRIES;

    /// The table in four registers: two instructions choose among 128 entries each by the low seven bits of an
    /// index, the highest bit between them.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    pub(super) fn lookup(table: &[u8; ENTRIES], x: &[u8], y: &mut [u8]) {
        let quarters = table.as_chunks::<64>().0;
        let [a, b, c, d] = [0, 1, 2, 3].map(|i| load(&quarters[i]));
        let one = |x: &[u8; 64], y: &mut [u8; 64]| {
            let x = load(x);
            let (low, high) = (_mm512_permutex2var_epi8(a, x, b), _mm512_permutex2var_epi8(c, x, d));
            let y: *mut [u8; 64] = y;
            // SAFETY: 64 bytes, of any alignment.
            unsafe {
                _mm512_storeu_si512(y.cast(), _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), low, high))
            };
        };
        let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<64>(), y.as_chunks_mut::<64>());
        x.iter().zip(y).for_each(|(x, y)| one(x, y));
        y_rest.iter_mut().zip(x_rest).for_each(|(y, &x)| *y = table[x as usize]);
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn load(x: &[u8; 64]) -> __m512i {
        let x: *const [u8; 64] = x;
        // SAFETY: 64 bytes, of any alignment.
        unsafe { _mm512_loadu_si512(x.cast()) }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::ENTRIES;

    /// Bytes from which on the table is worth spreading to vectors.
    pub(super) const FEWEST: usize = 256;

    /// Sixteen shuffles choose among sixteen entries each by the low four bits of an index; blends choose among these by
    /// the other bits, the highest of bytes that are shifted there.
    #[target_feature(enable = "avx2")]
    pub(super) fn lookup(table: &[u8; ENTRIES], x: &[u8], y: &mut [u8]) {
        let rows = table.as_chunks::<16>().0;
        let rows: [__m256i; 16] = std::array::from_fn(|i| {
            let row: *const [u8; 16] = &rows[i];
            // SAFETY: 16 bytes, of any alignment.
            unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(row.cast())) }
        });
        let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<32>(), y.as_chunks_mut::<32>());
        for (x, y) in x.iter().zip(y) {
            let (x, y): (*const [u8; 32], *mut [u8; 32]) = (x, y);
            // SAFETY: 32 bytes, of any alignment.
            let x = unsafe { _mm256_loadu_si256(x.cast()) };
            let low = _mm256_and_si256(x, _mm256_set1_epi8(15));
            let bits = [_mm256_slli_epi16::<3>(x), _mm256_slli_epi16::<2>(x), _mm256_add_epi8(x, x), x];
            let two = |i: usize| {
                let (a, b) = (_mm256_shuffle_epi8(rows[i], low), _mm256_shuffle_epi8(rows[i + 1], low));
                _mm256_blendv_epi8(a, b, bits[0])
            };
            let four = |i: usize| _mm256_blendv_epi8(two(i), two(i + 2), bits[1]);
            let eight = |i: usize| _mm256_blendv_epi8(four(i), four(i + 4), bits[2]);
            let all = _mm256_blendv_epi8(eight(0), eight(8), bits[3]);
            // SAFETY: 32 bytes, of any alignment.
            unsafe { _mm256_storeu_si256(y.cast(), all) };
        }
        y_rest.iter_mut().zip(x_rest).for_each(|(y, &x)| *y = table[x as usize]);
    }
}

fn build(_node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    Ok(CpuKernel::Tensor(Box::new(LookupKernel)))
}

struct LookupKernel;

impl Kernel for LookupKernel {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(table), Some(y)) = (inputs[0], inputs[1], &mut outputs[0]) else { return Ok(()) };
        let Some((table, [])) = table.bytes().split_first_chunk::<ENTRIES>() else {
            let reason = format!("the table has {} bytes; allowed is {ENTRIES}", table.len());
            return Err(OpError::Data(reason));
        };
        let x = x.bytes();
        split_mut(cx.pool, y.bytes(), 1, 8 * GRAIN, |range, y| lookup(table, &x[range], y));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{elements, run_in, t};

    #[test]
    fn every_byte_has_its_entry() {
        // A permutation of the bytes, over lengths around a register's.
        let table: [u8; ENTRIES] = std::array::from_fn(|i| (i as u8).wrapping_mul(167).wrapping_add(13));
        for len in [0, 1, 63, 64, 65, 300] {
            let x: Vec<u8> = (0..len).map(|i| (i * 7 + i / 37) as u8).collect();
            let mut y = vec![0; len];
            lookup(&table, &x, &mut y);
            let want: Vec<u8> = x.iter().map(|&x| x.wrapping_mul(167).wrapping_add(13)).collect();
            assert_eq!(y, want);
            #[cfg(target_arch = "x86_64")]
            if has_avx2() {
                y.fill(0);
                // SAFETY: the machine has these instructions.
                unsafe { avx2::lookup(&table, &x, &mut y) };
                assert_eq!(y, want);
            }
        }
    }

    #[test]
    fn signed_bytes_index_by_their_bits() {
        let table: [i8; ENTRIES] = std::array::from_fn(|i| (i as i8) / 2);
        let inputs = [t(&[2, 2], &[-128i8, -1, 0, 127]), t(&[256], &table)];
        let y = run_in("rukh", "Lookup", 1, &[], &inputs, 1).unwrap().remove(0);
        assert_eq!(elements::<i8>(&y), (vec![2, 2], vec![-64, 0, 0, 63]));
        let short = [t(&[2], &[1u8, 2]), t(&[255], &[0u8; 255])];
        assert!(matches!(run_in("rukh", "Lookup", 1, &[], &short, 1), Err(OpError::Input { index: 1, .. })));
    }
}
