//! Bytes that begin where librukh can use them in place.

/// As librukh aligns the memory of tensors: an artifact in such memory is not copied.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
struct Line([[u8; 32]; 2]);

/// Bytes at a multiple of 64.
pub(crate) struct AlignedBytes {
    lines: Vec<Line>,
    length: usize,
}

impl AlignedBytes {
    pub(crate) fn zeroed(length: usize) -> AlignedBytes {
        AlignedBytes { lines: vec![Line::default(); length.div_ceil(size_of::<Line>())], length }
    }
}

impl AsRef<[u8]> for AlignedBytes {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the lines are so many bytes at least, without gaps, and borrowed as long as the slice.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.length) }
    }
}

impl AsMut<[u8]> for AlignedBytes {
    fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed by nobody else.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.length) }
    }
}

#[cfg(test)]
mod tests {
    use super::AlignedBytes;

    #[test]
    fn bytes_are_aligned_and_as_many_as_asked() {
        for length in [0, 1, 63, 64, 65, 4097] {
            let mut bytes = AlignedBytes::zeroed(length);
            bytes.as_mut().fill(7);
            assert_eq!(bytes.as_ref(), vec![7; length]);
            assert!(bytes.as_ref().as_ptr().addr().is_multiple_of(64));
        }
    }
}
