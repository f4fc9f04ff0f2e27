//! Where products of a pair of weights may not fit into 16 bits, see `super`: for products of matrices that is told, off weights of
//! convolutions it is cut.

use crate::loops::packed_weights::Weights;
use crate::loops::packing::Packing;

/// Rests of a chunk at most.
const CHUNK: usize = 4;
/// In the word of a rest's place: the next one belongs to the same chunk.
const GOES_ON: u32 = 0x80;

/// What was cut off one dot group (of products of matrices: the whole of it): that at `depth`, in column `column` of a panel (row of
/// a strip).
#[derive(Clone, Copy)]
pub(crate) struct Rest {
    pub(crate) depth: usize,
    pub(crate) column: usize,
    pub(crate) group: u32,
}

impl Rest {
    pub(crate) fn of([place, group]: [u32; 2]) -> Self {
        Rest { depth: (place >> 8) as usize, column: (place & 0x7f) as usize, group }
    }

    /// Its product with a dot group of unsigned bytes.
    pub(crate) fn product(self, x: u32) -> i32 {
        let each = x.to_le_bytes().into_iter().zip(self.group.to_le_bytes());
        each.map(|(x, rest)| i32::from(x) * i32::from(rest as i8)).sum()
    }
}

/// Parts rests into chunks: those of one column whose products fit into 16 bits together, so that they are widened once.
pub(crate) struct Chunks<'a>(pub(crate) &'a [[u32; 2]]);

impl<'a> Iterator for Chunks<'a> {
    type Item = &'a [[u32; 2]];

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let going_on = self.0.iter().take_while(|[place, _]| place & GOES_ON != 0).count();
        let (chunk, others) = self.0.split_at_checked((going_on + 1).min(self.0.len()))?;
        self.0 = others;
        (!chunk.is_empty()).then_some(chunk)
    }
}

/// Where products of a pair of weights of a panel, whose lines have `columns` dot groups of signed bytes, with unsigned bytes may
/// not fit into 16 bits: the place and the group of each; `None` where it is more than one dot group in `share`.
pub(crate) fn find(panel: &[u32], columns: usize, share: usize) -> Option<Vec<[u32; 2]>> {
    assert!(columns <= GOES_ON as usize && panel.len() < columns << 24);
    let place = |i: usize| ((i / columns) << 8 | (i % columns)) as u32;
    let found = saturating(panel, panel.len() / share)?;
    Some(found.into_iter().map(|i| [place(i), panel[i]]).collect())
}

/// Cuts the weights of a panel whose lines have `columns` dot groups of signed bytes. The rests, in chunks, of which those that
/// follow one another mostly belong to different columns; `None`, and nothing is changed, where more than one dot group in `share`
/// has one.
pub(crate) fn cut(panel: &mut [u32], columns: usize, share: usize) -> Option<Vec<[u32; 2]>> {
    let found = find(panel, columns, share)?;
    let rests: Vec<_> = found.into_iter().map(|[place, group]| [place, rest(group)]).collect();
    for rest in rests.iter().map(|&rest| Rest::of(rest)) {
        let group = &mut panel[rest.depth * columns + rest.column];
        let (all, rest) = (group.to_le_bytes(), rest.group.to_le_bytes());
        *group = u32::from_le_bytes([0, 1, 2, 3].map(|i| all[i].wrapping_sub(rest[i])));
    }
    Some(in_chunks(rests, columns))
}

/// Rests in the order of lines, as chunks.
fn in_chunks(rests: Vec<[u32; 2]>, columns: usize) -> Vec<[u32; 2]> {
    // Of each column: the totals of the chunk that is being filled, of either sign for each pair, and all chunks.
    let mut all = vec![([[0; 2]; 2], Vec::<Vec<[u32; 2]>>::new()); columns];
    for rest in rests {
        let Rest { column, group, .. } = Rest::of(rest);
        let (totals, chunks) = &mut all[column];
        let bytes = group.to_le_bytes().map(|byte| i32::from(byte as i8));
        let mut sums = *totals;
        for (sums, pair) in sums.iter_mut().zip(bytes.as_chunks::<2>().0) {
            pair.iter().for_each(|&byte| sums[usize::from(byte < 0)] += byte);
        }
        let fits = sums.iter().all(|&[above, below]| above <= 128 && below >= -128);
        match chunks.last_mut().filter(|chunk| fits && chunk.len() < CHUNK) {
            Some(chunk) => {
                if let Some([place, _]) = chunk.last_mut() {
                    *place |= GOES_ON;
                }
                chunk.push(rest);
                *totals = sums;
            }
            None => {
                for (total, pair) in totals.iter_mut().zip(bytes.as_chunks::<2>().0) {
                    *total = [pair.iter().map(|x| *x.max(&0)).sum(), pair.iter().map(|x| *x.min(&0)).sum()];
                }
                chunks.push(vec![rest]);
            }
        }
    }
    let most = all.iter().map(|(_, chunks)| chunks.len()).max().unwrap_or(0);
    let chunks = (0..most).flat_map(|i| all.iter().filter_map(move |(_, chunks)| chunks.get(i)));
    chunks.flatten().copied().collect()
}

/// The dot groups that have a rest; `None` where there are more than `most`.
fn saturating(groups: &[u32], most: usize) -> Option<Vec<usize>> {
    #[cfg(target_arch = "x86_64")]
    if super::available() {
        // SAFETY: the processor has AVX2.
        return unsafe { x86::saturating(groups, most) };
    }
    let all = (0..groups.len()).filter(|&i| rest(groups[i]) != 0);
    let found: Vec<_> = all.take(most + 1).collect();
    (found.len() <= most).then_some(found)
}

/// What has to be cut off a dot group: something of the larger byte of each pair. Only two bytes of one sign are more than 128
/// together.
fn rest(group: u32) -> u32 {
    let bytes = group.to_le_bytes().map(|byte| i32::from(byte as i8));
    let mut rest = [0; 4];
    for at in [0, 2] {
        let (a, b) = (bytes[at], bytes[at + 1]);
        rest[at + usize::from(a.abs() <= b.abs())] = (a + b - (a + b).clamp(-128, 128)) as u8;
    }
    u32::from_le_bytes(rest)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// As `super::saturating`.
    ///
    /// # Safety
    /// The processor has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn saturating(groups: &[u32], most: usize) -> Option<Vec<usize>> {
        let (one, limit) = (_mm256_set1_epi8(1), _mm256_set1_epi16(128));
        let mut found = Vec::new();
        let (vectors, rest) = groups.as_chunks::<8>();
        for (i, vector) in vectors.iter().enumerate() {
            // SAFETY: a vector has 32 bytes.
            let bytes = unsafe { _mm256_loadu_si256(vector.as_ptr().cast()) };
            let totals = _mm256_abs_epi16(_mm256_maddubs_epi16(one, bytes));
            let fits = _mm256_cmpeq_epi32(_mm256_cmpgt_epi16(totals, limit), _mm256_setzero_si256());
            let mut over = !_mm256_movemask_ps(_mm256_castsi256_ps(fits)) as u8;
            while over != 0 {
                found.push(8 * i + over.trailing_zeros() as usize);
                over &= over - 1;
            }
            if found.len() > most {
                return None;
            }
        }
        let first = 8 * vectors.len();
        found.extend((0..rest.len()).filter(|&i| super::rest(rest[i]) != 0).map(|i| first + i));
        (found.len() <= most).then_some(found)
    }
}

/// The rests of all panels of a weight.
pub(crate) struct PanelRests {
    /// Where those of each panel end, and whether they are told.
    ends: Weights<u32>,
    words: Weights<u32>,
}

impl PanelRests {
    /// Of what `cut` or `find` told of each panel of `depth` lines of `columns` dot groups. What was kept is checked, as products rely
    /// on it: where it does not belong to such panels the node's packs are told, and there are no rests.
    pub(crate) fn new(
        panels: &[Option<Vec<[u32; 2]>>],
        [depth, columns]: [usize; 2],
        packing: Packing<'_>,
    ) -> Self {
        let pieces = packing.pieces(2);
        let ends = pieces.at(0).filled(2 * panels.len(), |ends| {
            let mut end = 0;
            for (y, rests) in ends.as_chunks_mut::<2>().0.iter_mut().zip(panels) {
                end += rests.as_ref().map_or(0, Vec::len);
                *y = [end as u32, u32::from(rests.is_some())];
            }
        });
        let count = ends.len().checked_sub(2).map_or(0, |last| ends[last] as usize);
        let most = panels.len() * depth * columns;
        if ends.as_chunks::<2>().0.is_sorted_by_key(|&[end, _]| end) && count <= most {
            let words = pieces.at(1).filled(2 * count, |words| {
                let all = panels.iter().flatten().flatten();
                words.as_chunks_mut().0.iter_mut().zip(all).for_each(|(y, &rest)| *y = rest);
            });
            let inside = |rest: &Rest| rest.depth < depth && rest.column < columns;
            if words.len() == 2 * count && words.as_chunks().0.iter().all(|&rest| inside(&Rest::of(rest))) {
                return PanelRests { ends, words };
            }
        }
        pieces.at(1).cannot_be_kept();
        PanelRests { ends: Weights::filled(0, |_| {}), words: Weights::filled(0, |_| {}) }
    }

    /// Those of a panel; `None` where they are not told: it has too many.
    pub(crate) fn of(&self, panel: usize) -> Option<&[[u32; 2]]> {
        let ends = self.ends.as_chunks::<2>().0;
        let [end, told] = *ends.get(panel)?;
        let start = panel.checked_sub(1).map_or(0, |before| ends[before][0]);
        (told != 0).then(|| &self.words.as_chunks().0[start as usize..end as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::super::COLUMNS;
    use super::super::tests::groups;
    use super::*;
    use crate::threads::Pool;

    /// All pairs of bytes, in each half of a dot group.
    #[test]
    fn pairs_that_saturate_are_found() {
        let pair = |a: i32, b: i32| u32::from(a as u8) | u32::from(b as u8) << 8;
        let all = || (-128..128).flat_map(|a| (-128..128).map(move |b| (a, b)));
        let groups: Vec<u32> = all().flat_map(|(a, b)| [pair(a, b), pair(a, b) << 16, 0]).skip(1).collect();
        let over = |group: u32| {
            let bytes = group.to_le_bytes().map(|byte| i32::from(byte as i8));
            bytes
                .as_chunks::<2>()
                .0
                .iter()
                .any(|[a, b]| a.max(&0) + b.max(&0) > 128 || a.min(&0) + b.min(&0) < -128)
        };
        let want: Vec<usize> = (0..groups.len()).filter(|&i| over(groups[i])).collect();
        assert_eq!(saturating(&groups, want.len()), Some(want.clone()));
        assert_eq!(saturating(&groups, want.len() - 1), None);
        assert!(groups.iter().all(|&group| (rest(group) != 0) == over(group)));
    }

    #[test]
    fn what_is_cut_off_is_told() {
        let panels: Vec<_> = [(0, true), (8, true), (200, true), (1009, false)]
            .into_iter()
            .map(|(share, is_cut)| {
                let before = groups(COLUMNS * 64, share, share);
                let mut panel = before.clone();
                let rests = cut(&mut panel, COLUMNS, 4);
                assert_eq!(rests.is_some(), is_cut, "{share}");
                let sums = rests.iter().flatten().map(|&rest| Rest::of(rest));
                for chunk in Chunks(rests.as_deref().unwrap_or_default()) {
                    let each = chunk.iter().map(|&rest| Rest::of(rest));
                    assert!(
                        chunk.len() <= CHUNK
                            && each.clone().all(
                                |rest| rest.column == each.clone().next().map_or(0, |first| first.column)
                            )
                    );
                    for half in [0, 2] {
                        let bytes = each.clone().flat_map(|rest| {
                            rest.group
                                .to_le_bytes()
                                .into_iter()
                                .skip(half)
                                .take(2)
                                .map(|byte| i32::from(byte as i8))
                                .collect::<Vec<_>>()
                        });
                        let (above, below) = bytes.fold((0, 0), |(a, b), x| (a + x.max(0), b + x.min(0)));
                        assert!(above <= 128 && below >= -128, "{chunk:?}");
                    }
                }
                let parts: Vec<_> = Chunks(rests.as_deref().unwrap_or_default()).flatten().copied().collect();
                assert_eq!(parts, rests.clone().unwrap_or_default());
                for group in panel.iter().filter(|_| is_cut) {
                    let bytes = group.to_le_bytes().map(|byte| i32::from(byte as i8));
                    for pair in bytes.chunks(2) {
                        let (above, below) =
                            pair.iter().fold((0, 0), |(a, b), &x| (a + x.max(0), b + x.min(0)));
                        assert!(above <= 128 && below >= -128, "{bytes:?}");
                    }
                }
                for Rest { depth, column, group } in sums {
                    let at = &mut panel[depth * COLUMNS + column];
                    let (a, b) = (at.to_le_bytes(), group.to_le_bytes());
                    *at = u32::from_le_bytes([0, 1, 2, 3].map(|i| a[i].wrapping_add(b[i])));
                }
                assert_eq!(panel, before);
                rests
            })
            .collect();
        let all = PanelRests::new(&panels, [64, COLUMNS], (&Pool::new(1)).into());
        for (i, rests) in panels.iter().enumerate() {
            assert_eq!(all.of(i), rests.as_deref(), "{i}");
        }
        assert_eq!(all.of(panels.len()), None);
    }
}
