//! The contract between a plan and a GPU kernel.

use crate::ops::OpError;
use crate::providers::Argument;

use super::PlanBuilder;

/// An operator on a GPU, made once for a node.
pub(crate) trait HipKernel: Send + Sync {
    /// Appends the launches for these shapes. An input has its value where the plan knows it on the
    /// host; those of `host_inputs` always have it. Every element of each wanted output must be written.
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError>;

    /// Inputs that are read on the host while planning (axes, pads, a shape), never on the device.
    fn host_inputs(&self) -> &[usize] {
        &[]
    }

    /// Whether a constant matrix at this input lies transposed in the device's memory: its columns contiguous, though its
    /// shape stays. Asked for constants of rank 2 alone.
    fn transposes(&self, _input: usize) -> bool {
        false
    }

    /// Inputs whose memory output 0 may take when nobody needs the input afterwards: each of its
    /// elements is read by the work item that writes the same place, and before. Only where type and
    /// element count are equal, which the plan checks.
    fn in_place(&self) -> &[usize] {
        &[]
    }

    /// Outputs, each with the input that it is with new rows put in (a cache): it may have the input's memory.
    fn caches(&self) -> &[(usize, usize)] {
        &[]
    }

    /// Whether output 0 is input 0 under another shape; a plan may then let both share their memory.
    fn reshapes(&self) -> bool {
        false
    }
}
