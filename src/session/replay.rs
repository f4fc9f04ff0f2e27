//! Launches of a run that are recorded as a graph, and given to the device as one.

use std::any::Any;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::error::{Result, fail};
use crate::hip::{CaptureMode, Captured, Graph, Node};
use crate::plan::{DeviceStep, State, StepPlan};
use crate::providers::hip::{MovingStep, Recorded, RecordedRun};
use crate::tensor::{Place, ValueRef};

use super::device_run::Operands;
use super::inputs::MANY;
use super::log::{Category, Level};
use super::output::{Output, check_bound};
use super::run::Run;

impl Run<'_, '_> {
    /// Whether the plan's launches are there as a graph for the addresses of this run. A run that is profiled has
    /// none, so that each node has a time of its own; neither has one that the user records.
    pub(super) fn find_graph(&mut self, outputs: &[Output]) -> Recorded {
        let Some(device) = &mut self.device else { return Recorded::Not };
        let wanted = device.provider.uses_graphs() && self.cx.recorder.is_none() && !device.is_capturing();
        if self.plan.launches.is_empty() || !wanted {
            return Recorded::Not;
        }
        let on_device = |v: &&ValueRef<'_>| v.place() == Some(Place::Device);
        let inputs = self.inputs.iter().filter(on_device).map(|v| v.span().0.addr() as u64);
        let addresses: SmallVec<[u64; 2 * MANY]> =
            inputs.chain(outputs.iter().filter_map(Output::device_address)).collect();
        // The block and the error words stay where they are while the context has graphs.
        device.graphs.find(self.whole_plan, &addresses)
    }

    /// Does the whole run by its graph, when it consists of nothing else; tells whether it did.
    pub(super) fn replay(&mut self, recorded: Recorded, outputs: &[Output]) -> Result<bool> {
        let (Recorded::Ready, Some(values)) = (recorded, &self.plan.only_launches) else { return Ok(false) };
        for (index, (output, &value)) in outputs.iter().zip(values).enumerate() {
            if let (Output::Bound(tensor), Some((ty, shape))) =
                (output, self.plan.states[value as usize].layout())
            {
                check_bound(self.program, index, tensor, ty, shape)?;
            }
        }
        if self.is_cancelled() {
            fail!(Cancelled, "the run was cancelled");
        }
        self.launch_recorded()?;
        Ok(true)
    }

    /// Gives the plan's launches to the device as one graph, when it is there or can be made; tells whether it did.
    pub(super) fn launch_graph(&mut self, recorded: Recorded, block: u64) -> Result<bool> {
        let made = match recorded {
            Recorded::Not => false,
            Recorded::Ready => true,
            Recorded::Again => self.record(block)?,
            Recorded::Elsewhere(at) => self.move_here(at, block)?,
        };
        if made {
            self.launch_recorded()?;
        }
        Ok(made)
    }

    fn launch_recorded(&mut self) -> Result<()> {
        let Some(device) = &mut self.device else { return Ok(()) };
        device.before_work()?;
        device.may_have_errors |= self.plan.reports_errors;
        if let Some(run) = device.graphs.ready() {
            // SAFETY: the graph was recorded for this plan and has these addresses, which the run keeps until its
            // work is done.
            unsafe { run.graph.launch(&device.stream)? };
        }
        Ok(())
    }

    /// Records the launches. `false`: it cannot be done; that is told once.
    fn record(&mut self, block: u64) -> Result<bool> {
        let Some(device) = &mut self.device else { return Ok(false) };
        // What a recorded stream waits for must be recorded as well.
        device.before_work()?;
        let (stream, plan) = (device.stream.clone(), self.plan);
        let mut moving = Some(Vec::new());
        let captured = Graph::capture(&stream, CaptureMode::ThreadLocal, || {
            for step in plan.launches.clone() {
                let StepPlan::Device(planned) = &plan.steps[step] else { continue };
                // `None` in it: the step's launches cannot be given other addresses.
                let can_change = planned.launches.can_be_changed();
                let mut nodes = self.moves(step, planned).then(|| can_change.then(SmallVec::new));
                let given = |launch: Option<usize>| {
                    if let Some(known) = &mut nodes {
                        match (known.as_mut(), launch.zip(Node::last(&stream))) {
                            (Some(nodes), Some(node)) => nodes.push(node),
                            _ => *known = None,
                        }
                    }
                };
                // An error of the data's or the device's comes again without a graph.
                if self.device_step(step, planned, block, given).is_err() {
                    return false;
                }
                match (nodes, &mut moving) {
                    (Some(Some(nodes)), Some(moving)) => moving.push(MovingStep { step, nodes }),
                    (Some(None), _) => moving = None,
                    _ => {}
                }
            }
            true
        })?;
        let Some(device) = &mut self.device else { return Ok(false) };
        let kept: Arc<dyn Any + Send + Sync> = self.whole_plan.clone();
        let (run, why) = match captured {
            Captured::Graph(graph) => (Some(RecordedRun::new(graph, moving, kept)), ""),
            Captured::Refused => (None, "the GPU runtime cannot record these launches"),
            Captured::Unsupported => {
                device.provider.give_graphs_up();
                (None, "this GPU runtime cannot record the stream")
            }
        };
        let made = run.is_some();
        device.graphs.set(run);
        if !made && device.provider.tells_of_graphs() {
            // Who did not ask for graphs misses nothing.
            let level = if device.provider.wants_graphs() { Level::Warning } else { Level::Info };
            let message = format!("provider \"hip\": enable_hip_graph has no effect: {why}");
            self.cx.log.write(level, Category::Provider, "", &message);
        }
        Ok(made)
    }

    /// Gives the graph at this place the addresses of this run. `false`: the runtime refuses.
    fn move_here(&mut self, at: usize, block: u64) -> Result<bool> {
        let Some(device) = &mut self.device else { return Ok(false) };
        // The graphs leave the context while the run works with both.
        let mut graphs = std::mem::take(&mut device.graphs);
        let changed = graphs.movable(at).map_or(Ok(false), |run| self.change(run, block));
        graphs.moved(at, matches!(changed, Ok(true)));
        if let Some(device) = &mut self.device {
            device.graphs = graphs;
        }
        changed
    }

    fn change(&mut self, run: &RecordedRun, block: u64) -> Result<bool> {
        let (Some(device), Some(moving)) = (&mut self.device, &run.moving) else { return Ok(false) };
        for MovingStep { step, nodes } in moving {
            let StepPlan::Device(planned) = &self.plan.steps[*step] else { continue };
            let operands = Operands::new(&self.program.steps[*step], planned, &self.memory.spans);
            let addresses = operands.addresses(device, *step, planned, block);
            // SAFETY: the nodes were recorded for these launches; the addresses are those of this run, which keeps
            // them until its work is done, and the graph is launched for no other run before it is changed again.
            if !unsafe { planned.launches.change(&run.graph, nodes, &addresses, &mut device.params)? } {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a step uses memory that the caller gives to each run.
    fn moves(&self, step: usize, planned: &DeviceStep) -> bool {
        let given = |value: &u32| {
            let state = match &self.plan.states[*value as usize] {
                State::Alias { of, .. } => &self.plan.states[*of as usize],
                state => state,
            };
            matches!(state, State::Input { .. } | State::Output { .. })
        };
        let step = &self.program.steps[step];
        planned.used(&step.inputs, &step.outputs).iter().any(given)
    }
}
