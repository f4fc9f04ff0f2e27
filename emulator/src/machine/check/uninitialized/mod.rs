//! Values that nobody wrote.
//!
//! Each wave has a twin, which executes the same instructions. What nobody wrote (registers, LDS, scratch, new memory of
//! the device) holds other bits in the twin than in the wave, so a value that differs depends on it. A compiler may move
//! and combine such values as it likes. It is a mistake when one is stored to global memory, is an address, decides a
//! branch or which lanes run.
//!
//! A decision that both take alike is not seen, such as a comparison for one value that neither of them has.
//!
//! The twin touches no global memory: what the wave loads it is given, but for bytes that nobody wrote.

mod plan;
mod report;
mod twin;

use std::rc::Rc;

use super::Launch;
use super::cache::Cache;
use super::data::Data;
use crate::isa::Instruction;
use crate::machine::fault::Fault;
use crate::machine::group::{Access, AccessKind, Group, Observer, Space, Watch};
use crate::machine::step::{Action, Setting, prepare};
use crate::machine::wave::{Wave, lanes_of};
use plan::Plan;
use twin::Twin;

/// The values of a launch that nobody wrote.
pub struct Uninitialized<'a> {
    launch: Launch<'a>,
}

impl<'a> Uninitialized<'a> {
    pub fn new(launch: Launch<'a>) -> Uninitialized<'a> {
        Uninitialized { launch }
    }
}

impl Watch for Uninitialized<'_> {
    fn observer(&self) -> Box<dyn Observer + '_> {
        let launch = self.launch;
        let group = Group {
            target: launch.program.target,
            memory: launch.memory,
            id: [0; 3],
            lds: Vec::new(),
            observers: Vec::new(),
            observed: false,
        };
        Box::new(Observing {
            launch,
            group,
            known: Cache::default(),
            twins: Vec::new(),
            now: None,
            seen: Seen::default(),
        })
    }
}

/// What is known of an instruction.
struct Known {
    /// What the twin does.
    action: Action,
    plan: Plan,
    data: [Option<Data>; 2],
}

/// The accesses of the instruction that is executed.
#[derive(Default)]
struct Seen {
    global: bool,
    other: bool,
    count: u32,
    /// Bytes of what is loaded that nobody wrote: the lane, and which of its bytes.
    undefined: Vec<(usize, u32)>,
}

struct Observing<'a> {
    launch: Launch<'a>,
    /// With the twin's LDS.
    group: Group<'a>,
    known: Cache<Known>,
    twins: Vec<Twin>,
    now: Option<Rc<Known>>,
    seen: Seen,
}

impl Observer for Observing<'_> {
    fn begin(&mut self, group: [u32; 3], waves: &[Wave]) -> Result<(), Box<Fault>> {
        self.group.id = group;
        self.group.lds.resize(self.launch.lds as usize, 0);
        twin::fill(&mut self.group.lds);
        self.twins.resize_with(waves.len(), || Twin::new(waves[0].lanes));
        for (twin, wave) in self.twins.iter_mut().zip(waves) {
            twin.start(wave, &self.launch);
        }
        Ok(())
    }

    fn before(&mut self, wave: &Wave, instruction: &Instruction) -> Result<(), Box<Fault>> {
        let (target, lanes, base) = (self.launch.program.target, wave.lanes, self.launch.program.base);
        let known = self.known.get(instruction, || Known {
            action: prepare(instruction, Setting { target, lanes, base }),
            plan: Plan::of(instruction),
            data: Data::of(instruction),
        });
        self.seen.undefined.clear();
        (self.seen.global, self.seen.other, self.seen.count) = (false, false, 0);
        let checked = report::before(&known.plan, instruction, wave, &self.twins[wave.id].wave);
        self.now = Some(known);
        checked
    }

    fn access(&mut self, wave: &Wave, access: &Access<'_>) -> Result<(), Box<Fault>> {
        match access.space {
            Space::Global | Space::Scalar => self.seen.global = true,
            Space::Lds | Space::Scratch => {
                self.seen.other = true;
                return Ok(());
            }
        }
        if access.kind == AccessKind::Load {
            self.find_undefined(access);
        } else {
            let data = self.now.as_ref().and_then(|known| known.data[0]);
            report::stored(data, access, wave, &self.twins[wave.id].wave)?;
            for lane in lanes_of(access.mask) {
                self.launch.memory.define(access.addresses[lane], access.bytes.into());
            }
        }
        self.seen.count += 1;
        Ok(())
    }

    fn after(&mut self, wave: &Wave, instruction: &Instruction) -> Result<(), Box<Fault>> {
        let Some(known) = self.now.take() else { return Ok(()) };
        let twin = &mut self.twins[wave.id];
        match known.plan.action(self.seen.global, self.seen.other) {
            plan::Action::Nothing => {}
            plan::Action::Take => twin.take(wave, instruction, &self.seen.undefined),
            plan::Action::Execute => {
                (known.action)(&mut twin.wave, &mut self.group).map_err(|fault| {
                    Fault::check(format!("uninitialized: with another value of what nobody wrote, {fault}"))
                })?;
            }
        }
        report::after(wave, &twin.wave)
    }
}

impl Observing<'_> {
    fn find_undefined(&mut self, access: &Access<'_>) {
        let memory = self.launch.memory;
        if !memory.tracks_undefined() {
            return;
        }
        // Scalar loads by buffers come word by word.
        let first = if access.space == Space::Scalar { 4 * self.seen.count } else { 0 };
        for lane in lanes_of(access.mask) {
            let address = access.addresses[lane];
            let bytes = (0..access.bytes).filter(|&byte| memory.is_undefined(address + u64::from(byte)));
            self.seen.undefined.extend(bytes.map(|byte| (lane, first + byte)));
        }
    }
}
