//! What a device's kernel may read while the kernel just before it still runs: what that one does not write
//! (`wait_for_kernels_before` in `kernels/include/rukh/device.h`).

use std::collections::BTreeSet;

/// Values that the last kernel of the steps so far may have written, by their roots.
#[derive(Debug, Default)]
pub(super) enum Unsettled {
    /// Whatever there is: no kernel was launched yet, or nobody knows which.
    #[default]
    All,
    These(BTreeSet<u32>),
}

impl Unsettled {
    pub(super) fn has(&self, root: u32) -> bool {
        match self {
            Unsettled::All => true,
            Unsettled::These(roots) => roots.contains(&root),
        }
    }

    /// To be called behind a step that wrote these. `launched`: with at least one kernel, whatever the run gives it.
    pub(super) fn wrote(&mut self, roots: impl Iterator<Item = u32>, launched: bool) {
        if launched {
            *self = Unsettled::These(BTreeSet::new());
        }
        if let Unsettled::These(these) = self {
            these.extend(roots);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_last_kernel_wrote_is_unsettled() {
        let mut unsettled = Unsettled::default();
        assert!(unsettled.has(7), "before the first kernel");
        for (wrote, launched, expected) in [
            // Copies and steps that may launch nothing leave the last kernel what it was.
            (vec![1], false, None),
            (vec![2, 3], true, Some(vec![2, 3])),
            (vec![4], false, Some(vec![2, 3, 4])),
            (vec![], false, Some(vec![2, 3, 4])),
            (vec![5], true, Some(vec![5])),
        ] {
            unsettled.wrote(wrote.iter().copied(), launched);
            for root in 0..8 {
                let is_unsettled = expected.as_ref().is_none_or(|these| these.contains(&root));
                assert_eq!(unsettled.has(root), is_unsettled, "{root} after {wrote:?}");
            }
        }
    }
}
