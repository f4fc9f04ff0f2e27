//! What a device's kernel may read while the kernel just before it still runs: what that one does not write
//! (`wait_for_kernels_before` in `kernels/include/rukh/device.h`), and what that one leaves.

use std::collections::BTreeSet;

/// The kernels before a step.
#[derive(Debug, Default)]
pub(super) struct Before {
    unsettled: Unsettled,
    /// Whether the last one likely leaves no workgroup memory beside it.
    pub(super) fills_memory: bool,
}

/// Values that kernels of the steps so far may still be writing when the next one starts, by their roots.
#[derive(Debug, Default)]
enum Unsettled {
    /// Whatever there is: no kernel was launched yet, or nobody knows which.
    #[default]
    All,
    These(BTreeSet<u32>),
}

impl Before {
    /// Whether they may still be writing a value.
    pub(super) fn writes(&self, root: u32) -> bool {
        match &self.unsettled {
            Unsettled::All => true,
            Unsettled::These(roots) => roots.contains(&root),
        }
    }

    /// To be called behind a step that wrote these. `settles`: with a kernel, whatever the run gives it, before which all
    /// others have ended when the next one starts.
    pub(super) fn wrote(&mut self, roots: impl Iterator<Item = u32>, settles: bool) {
        if settles {
            self.unsettled = Unsettled::These(BTreeSet::new());
        }
        if let Unsettled::These(these) = &mut self.unsettled {
            these.extend(roots);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_since_the_last_kernel_that_waits_first_is_unsettled() {
        let mut before = Before::default();
        assert!(before.writes(7), "before the first kernel");
        for (wrote, settles, expected) in [
            // Copies, steps that may launch nothing and kernels that let the next one start early leave the last kernel what it was.
            (vec![1], false, None),
            (vec![2, 3], true, Some(vec![2, 3])),
            (vec![4], false, Some(vec![2, 3, 4])),
            (vec![], false, Some(vec![2, 3, 4])),
            (vec![5], true, Some(vec![5])),
        ] {
            before.wrote(wrote.iter().copied(), settles);
            for root in 0..8 {
                let is_unsettled = expected.as_ref().is_none_or(|these| these.contains(&root));
                assert_eq!(before.writes(root), is_unsettled, "{root} after {wrote:?}");
            }
        }
    }
}
