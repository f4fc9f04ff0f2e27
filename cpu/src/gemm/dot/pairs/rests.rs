//! What is cut off weights so that two products of bytes fit into 16 bits, see `super`.

use crate::loops::packed_weights::Weights;
use crate::loops::packing::Packing;

/// What was cut off one dot group: that at `depth`, in column `column` of a panel (row of a strip).
#[derive(Clone, Copy)]
pub(crate) struct Rest {
    pub(crate) depth: usize,
    pub(crate) column: usize,
    pub(crate) group: u32,
}

impl Rest {
    pub(crate) fn of([place, group]: [u32; 2]) -> Self {
        Rest { depth: (place >> 8) as usize, column: (place & 0xff) as usize, group }
    }

    /// Its product with a dot group of unsigned bytes.
    pub(crate) fn product(self, x: u32) -> i32 {
        let each = x.to_le_bytes().into_iter().zip(self.group.to_le_bytes());
        each.map(|(x, rest)| i32::from(x) * i32::from(rest as i8)).sum()
    }
}

/// Cuts the weights of a panel whose lines have `columns` dot groups of signed bytes. The rests, in the order of lines, so that
/// those that follow one another mostly belong to different columns; `None`, and nothing is changed, where more than one dot group
/// in `share` has one.
pub(crate) fn cut(panel: &mut [u32], columns: usize, share: usize) -> Option<Vec<[u32; 2]>> {
    assert!(columns <= 1 << 8 && panel.len() < columns << 24);
    let mut rests = Vec::new();
    for (depth, line) in panel.chunks_exact(columns).enumerate() {
        for (column, &group) in line.iter().enumerate() {
            let rest = rest(group);
            if rest != 0 {
                rests.push([(depth << 8 | column) as u32, rest]);
            }
        }
        if rests.len() > panel.len() / share {
            return None;
        }
    }
    for rest in rests.iter().map(|&rest| Rest::of(rest)) {
        let group = &mut panel[rest.depth * columns + rest.column];
        let (all, rest) = (group.to_le_bytes(), rest.group.to_le_bytes());
        *group = u32::from_le_bytes([0, 1, 2, 3].map(|i| all[i].wrapping_sub(rest[i])));
    }
    Some(rests)
}

/// What has to be cut off a dot group: something of the larger byte of each pair.
fn rest(group: u32) -> u32 {
    let bytes = group.to_le_bytes().map(|byte| i32::from(byte as i8));
    let mut rest = [0; 4];
    for at in [0, 2] {
        let (a, b) = (bytes[at], bytes[at + 1]);
        let over = match () {
            () if a > 0 && b > 0 => (a + b - 128).max(0),
            () if a < 0 && b < 0 => (a + b + 128).min(0),
            () => 0,
        };
        rest[if a.abs() > b.abs() { at } else { at + 1 }] = over as u8;
    }
    u32::from_le_bytes(rest)
}

/// The rests of all panels of a weight.
pub(crate) struct PanelRests {
    /// Where those of each panel end, and whether it was cut.
    ends: Weights<u32>,
    words: Weights<u32>,
}

impl PanelRests {
    /// Of what `cut` told of each panel.
    pub(crate) fn new(panels: &[Option<Vec<[u32; 2]>>], packing: Packing<'_>) -> Self {
        let ends = packing.filled(2 * panels.len(), |ends| {
            let mut end = 0;
            for (y, rests) in ends.as_chunks_mut::<2>().0.iter_mut().zip(panels) {
                end += rests.as_ref().map_or(0, Vec::len);
                *y = [end as u32, u32::from(rests.is_some())];
            }
        });
        let count = ends.len().checked_sub(2).map_or(0, |last| ends[last] as usize);
        let words = packing.filled(2 * count, |words| {
            let all = panels.iter().flatten().flatten();
            words.as_chunks_mut().0.iter_mut().zip(all).for_each(|(y, &rest)| *y = rest);
        });
        PanelRests { ends, words }
    }

    /// Those of a panel; `None` where it was not cut.
    pub(crate) fn of(&self, panel: usize) -> Option<&[[u32; 2]]> {
        let ends = self.ends.as_chunks::<2>().0;
        let [end, cut] = *ends.get(panel)?;
        let start = panel.checked_sub(1).map_or(0, |before| ends[before][0]);
        (cut != 0).then(|| &self.words.as_chunks().0[start as usize..end as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::super::COLUMNS;
    use super::super::tests::groups;
    use super::*;
    use crate::threads::Pool;

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
        let all = PanelRests::new(&panels, (&Pool::new(1)).into());
        for (i, rests) in panels.iter().enumerate() {
            assert_eq!(all.of(i), rests.as_deref(), "{i}");
        }
        assert_eq!(all.of(panels.len()), None);
    }
}
