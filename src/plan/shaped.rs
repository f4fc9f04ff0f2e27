//! A program for given input shapes: what is known, where values lie, what a run must still do.

use std::ops::Range;

use smallvec::SmallVec;

use crate::graph::{Dim, Fact};
use crate::providers::cpu::Prepared;
use crate::providers::hip::LaunchPlan;
use crate::tensor::{ElementType, Place, Shape, Tensor, ValueRef};

use super::limit::Limit;

/// The inputs of a run and where its outputs go, as far as they decide its plan.
#[derive(Clone, Copy)]
pub(crate) struct Signature<'a> {
    pub(crate) inputs: &'a [ValueRef<'a>],
    pub(crate) outputs: &'a [OutputPlace],
}

/// Where an output of a run is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputPlace {
    Host,
    /// Nobody asks for it: what only it needs is not computed.
    Nowhere,
    /// In device memory that the caller bound.
    Device,
    /// In device memory that inputs of the run share. `exactly`: the input of just this memory.
    DeviceShared {
        exactly: Option<usize>,
    },
}

/// A plan for one signature of input shapes.
pub(crate) struct ShapedPlan {
    /// The recorded choices among kernels that it was made under.
    pub(super) tuning: u64,
    /// Type, shape and place of each input; `None` for one that is no plain tensor.
    pub(super) inputs: Vec<Option<(ElementType, Shape, Place)>>,
    pub(super) outputs: Vec<OutputPlace>,
    /// Inputs that were given on the device although steps read them on the host.
    pub(crate) needed_on_host: Vec<usize>,
    /// Values on the device that are copied to bound outputs at the end, and which outputs.
    pub(crate) copied_last: Vec<(u32, usize)>,
    /// Outputs that the device makes in memory that the run may have to allocate, with type and shape.
    pub(crate) made_on_device: Vec<(usize, ElementType, Shape)>,
    /// Steps that would copy an output to the host which is wanted on the device and known only while running.
    pub(crate) stay_on_device: Vec<usize>,
    /// The steps that a graph can stand for: nothing but launches.
    pub(crate) launches: Range<usize>,
    /// When a run consists of these steps alone: the value that each output is, made where the caller wants it.
    pub(crate) only_launches: Option<Vec<u32>>,
    /// Whether one of these steps may report errors in the data.
    pub(crate) reports_errors: bool,
    /// The first step whose work must be asked of the caller's operator in each run.
    pub(crate) not_capturable: Option<usize>,
    /// What the plan takes for granted of values that inputs have.
    pub(super) limits: Vec<Limit>,
    /// Values that are outputs, each with the run's input whose memory it takes over when the caller bound both to it.
    pub(crate) bound_in_place: Vec<(u32, usize)>,
    /// By value.
    pub(crate) states: Vec<State>,
    /// By step.
    pub(crate) steps: Vec<StepPlan>,
    /// Bytes of the block on the host.
    pub(crate) block: usize,
    /// Bytes of the block on the device.
    pub(crate) device_block: usize,
    /// Values known without running that device steps read, in order.
    pub(crate) uploaded: Vec<(u32, Tensor)>,
}

/// Where a value is during a run.
#[derive(Debug)]
pub(crate) enum State {
    /// Nobody needs it: it is folded away or consumed by a kernel when it was made.
    Absent,
    /// Known without running, on the host.
    Known(Tensor),
    /// A constant in device memory.
    Resident(Tensor),
    /// Input `index` of the run.
    Input { index: usize, ty: ElementType, shape: Shape },
    /// In the block of the side that its program value is made on.
    Block { offset: usize, ty: ElementType, shape: Shape },
    /// The memory of output `index` of the run.
    Output { index: usize, ty: ElementType, shape: Shape },
    /// The elements of another value, under a shape of its own.
    Alias { of: u32, ty: ElementType, shape: Shape },
    /// Made while running.
    Dynamic,
}

/// What a run does for a step.
pub(crate) enum StepPlan {
    /// Nothing: its outputs are known, or share memory with an input.
    Skip,
    /// Runs the kernel on planned memory.
    Planned(PlannedStep),
    /// Launches kernels on the device's memory.
    Device(DeviceStep),
    /// Copies planned memory to the other side.
    Copy(Place),
    /// Infers shapes and allocates while running.
    Dynamic,
}

pub(crate) struct DeviceStep {
    pub(crate) launches: LaunchPlan,
    /// The values that the launches have as inputs in place of the step's own: those of several steps.
    pub(crate) values: Option<Vec<u32>>,
    /// Offset of the scratch memory in the device's block.
    pub(crate) scratch: usize,
}

impl DeviceStep {
    /// The values that the launches use, of a step that has these.
    pub(crate) fn used(&self, inputs: &[Option<u32>], outputs: &[Option<u32>]) -> Vec<u32> {
        let own = || inputs.iter().chain(outputs).flatten().copied().collect();
        self.values.clone().unwrap_or_else(own)
    }
}

pub(crate) struct PlannedStep {
    pub(crate) prepared: Prepared,
    /// Offset of the scratch memory in the block.
    pub(crate) scratch: usize,
    /// The input whose memory output 0 takes over.
    pub(crate) in_place: Option<usize>,
    /// Outputs and the inputs whose memory they take over when the caller bound the run's output to exactly
    /// the memory of the run's input.
    pub(crate) in_place_if_bound: SmallVec<[(usize, usize); 2]>,
}

impl State {
    /// Type and shape of a value whose shape is planned.
    pub(crate) fn layout(&self) -> Option<(ElementType, &[usize])> {
        match self {
            State::Known(t) | State::Resident(t) => Some((t.ty(), t.shape())),
            State::Input { ty, shape, .. }
            | State::Block { ty, shape, .. }
            | State::Output { ty, shape, .. }
            | State::Alias { ty, shape, .. } => Some((*ty, shape)),
            State::Absent | State::Dynamic => None,
        }
    }

    pub(super) fn fact(&self) -> Option<Fact> {
        let (ty, shape) = self.layout()?;
        Some(Fact::tensor(ty, shape.iter().map(|&d| Dim::from(d)).collect()))
    }
}

impl OutputPlace {
    /// Whether the output is wanted in device memory.
    pub(super) fn is_on_device(self) -> bool {
        matches!(self, OutputPlace::Device | OutputPlace::DeviceShared { .. })
    }
}

impl ShapedPlan {
    pub(crate) fn matches(&self, signature: Signature<'_>) -> bool {
        let kept = |limit: &Limit| limit.is_kept_by(signature.inputs);
        self.outputs == signature.outputs
            && self.inputs.len() == signature.inputs.len()
            && self.inputs.iter().zip(signature.inputs).all(|(have, given)| match (have, given.layout()) {
                (Some((ty, shape, place)), Some(given)) => (*ty, &shape[..], *place) == given,
                (None, None) => true,
                _ => false,
            })
            && self.limits.iter().all(kept)
    }
}
