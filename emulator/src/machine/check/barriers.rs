//! Barriers that not all work items reach.
//!
//! A barrier counts waves. One that only some lanes of a wave reach lets the wave on all the same: the other lanes run
//! later, behind the barrier, and the work items no longer are where the program means them to be. Waves that wait at
//! different barriers let each other on. Work items that ended before are no mistake.

use super::Launch;
use crate::isa::Instruction;
use crate::machine::fault::Fault;
use crate::machine::group::{Access, Observer, Space, Watch};
use crate::machine::wave::{State, Wave, lanes_of};

/// The barriers of a launch.
pub struct Barriers<'a> {
    launch: Launch<'a>,
}

impl<'a> Barriers<'a> {
    pub fn new(launch: Launch<'a>) -> Barriers<'a> {
        Barriers { launch }
    }
}

impl Watch for Barriers<'_> {
    fn observer(&self) -> Box<dyn Observer + '_> {
        Box::new(Observing { launch: self.launch, group: [0; 3], waves: Vec::new() })
    }
}

#[derive(Clone, Copy, Default)]
struct Seen {
    /// Lanes that are work items.
    items: u64,
    /// Those of them that were not active at the last barrier.
    skipped: u64,
    /// The barrier, in bytes from the beginning of the code.
    barrier: u64,
}

struct Observing<'a> {
    launch: Launch<'a>,
    group: [u32; 3],
    waves: Vec<Seen>,
}

impl Observer for Observing<'_> {
    fn begin(&mut self, group: [u32; 3], waves: &[Wave]) -> Result<(), Box<Fault>> {
        self.group = group;
        self.waves = waves.iter().map(|wave| Seen { items: wave.exec(), ..Seen::default() }).collect();
        Ok(())
    }

    fn access(&mut self, wave: &Wave, access: &Access<'_>) -> Result<(), Box<Fault>> {
        // Registers are saved in scratch for lanes that do not run.
        if access.space == Space::Scratch || access.space == Space::Scalar {
            return Ok(());
        }
        self.check(wave, access.mask, "uses memory")
    }

    fn after(&mut self, wave: &Wave, instruction: &Instruction) -> Result<(), Box<Fault>> {
        if wave.state != State::AtBarrier {
            return Ok(());
        }
        self.check(wave, wave.exec(), "reaches a barrier")?;
        let seen = &mut self.waves[wave.id];
        seen.skipped = seen.items & !wave.exec();
        seen.barrier = instruction.offset;
        Ok(())
    }

    fn barrier(&mut self, waves: &[Wave]) -> Result<(), Box<Fault>> {
        let mut waiting = waves.iter().filter(|wave| wave.state == State::AtBarrier);
        let Some(first) = waiting.next() else { return Ok(()) };
        let at = |wave: &Wave| self.waves[wave.id].barrier;
        match waiting.find(|wave| at(wave) != at(first)) {
            Some(other) => Err(Fault::check(format!(
                "different barriers: wave {} waits at {}, wave {} at {}, workgroup {:?}",
                first.id,
                self.launch.text(at(first), first.lanes),
                other.id,
                self.launch.text(at(other), other.lanes),
                self.group,
            ))),
            None => Ok(()),
        }
    }
}

impl Observing<'_> {
    fn check(&self, wave: &Wave, mask: u64, what: &str) -> Result<(), Box<Fault>> {
        let Seen { skipped, barrier, .. } = self.waves[wave.id];
        match lanes_of(mask & skipped).next() {
            Some(lane) => Err(Fault::check(format!(
                "a barrier that not all work items reach: lane {lane} {what}, but was not active at {}",
                self.launch.text(barrier, wave.lanes)
            ))),
            None => Ok(()),
        }
    }
}
