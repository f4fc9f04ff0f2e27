//! Races: two waves touch one byte, one of them writes, not both by atomic operations, and nothing orders them.
//!
//! What orders two accesses (LLVM, "User Guide for AMDGPU Backend", "Memory Model"):
//!
//! * They are of one wave.
//! * A barrier of the workgroup is between them.
//! * The wave of the first waits until its stores are done, and then writes a place of memory by an atomic operation, or
//!   by a store of one lane (release). The wave of the second reads that place by an atomic operation or by a load that
//!   passes the caches, and makes its caches invalid (acquire). In LDS an atomic operation is both at once.
//!
//! Two stores of the same value are no race: memory holds the same whoever is first.

mod clock;
mod role;
mod shadow;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Launch;
use super::cache::Cache;
use super::counters::Counter;
use super::data::Data;
use crate::isa::Instruction;
use crate::machine::fault::Fault;
use crate::machine::group::{Access, AccessKind, Observer, Space, Watch};
use crate::machine::wave::{State, Wave, lanes_of};
use clock::{Clock, Others, Record, Way};
use role::Role;
use shadow::{Cells, Conflict, PAGE, Pages, Touch};

/// The races of a launch.
pub struct Races<'a> {
    launch: Launch<'a>,
    pages: Pages,
    /// What was released by the places of global memory.
    released: Mutex<HashMap<u64, Others>>,
}

impl<'a> Races<'a> {
    pub fn new(launch: Launch<'a>) -> Races<'a> {
        Races { launch, pages: Pages::new(), released: Mutex::default() }
    }

    fn released(&self) -> MutexGuard<'_, HashMap<u64, Others>> {
        self.released.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch for Races<'_> {
    fn observer(&self) -> Box<dyn Observer + '_> {
        Box::new(Observing {
            shared: self,
            roles: Cache::default(),
            group: 0,
            waves: Vec::new(),
            lds: Cells::new(),
            lds_released: Others::new(),
            now: Now::default(),
        })
    }
}

/// What is known of a wave.
struct WaveState {
    clock: Clock,
    /// Whether stores to global memory may be under way.
    storing: bool,
    /// What atomic operations and the like have read, until the caches are made invalid.
    read: Others,
}

/// The instruction that is executed.
#[derive(Default)]
struct Now {
    code: u32,
    /// Where its stores take their data from; one row for each access.
    data: [Option<Data>; 2],
    accesses: usize,
    /// It is a load that passes the caches.
    coherent: bool,
    /// The places that it reads by atomic operations.
    places: Vec<u64>,
}

struct Observing<'a> {
    shared: &'a Races<'a>,
    roles: Cache<Role>,
    group: u32,
    waves: Vec<WaveState>,
    lds: Cells,
    lds_released: Others,
    now: Now,
}

impl Observer for Observing<'_> {
    fn begin(&mut self, group: [u32; 3], waves: &[Wave]) -> Result<(), Box<Fault>> {
        self.group = self.shared.launch.number(group);
        self.lds.clear();
        self.lds_released.clear();
        let state = |wave| WaveState {
            clock: Clock::new(self.group, wave, waves.len()),
            storing: false,
            read: Others::new(),
        };
        self.waves = (0..waves.len()).map(state).collect();
        Ok(())
    }

    fn before(&mut self, wave: &Wave, instruction: &Instruction) -> Result<(), Box<Fault>> {
        let generation = self.shared.launch.program.target.generation;
        let role = self.roles.get(instruction, || Role::new(instruction, generation));
        match *role {
            Role::Other => {}
            Role::Wait(allowed) => {
                if allowed[Counter::Store.of(generation) as usize] == Some(0) {
                    self.waves[wave.id].storing = false;
                }
            }
            Role::Invalidate => {
                let state = &mut self.waves[wave.id];
                if !state.read.is_empty() {
                    let read = std::mem::take(&mut state.read);
                    state.clock.acquire(&read);
                }
            }
            Role::Memory { data, coherent } => {
                let places = std::mem::take(&mut self.now.places);
                self.now = Now { code: instruction.offset as u32, data, accesses: 0, coherent, places };
            }
        }
        Ok(())
    }

    fn access(&mut self, wave: &Wave, access: &Access<'_>) -> Result<(), Box<Fault>> {
        if access.space == Space::Scratch {
            return Ok(());
        }
        let conflict = match access.space {
            Space::Lds => self.touch_lds(wave, access),
            _ => self.touch_global(wave, access),
        };
        self.now.accesses += 1;
        if let Some((lane, conflict)) = conflict {
            return Err(self.report(wave, access, lane, &conflict));
        }
        self.synchronize(wave, access);
        Ok(())
    }

    fn after(&mut self, wave: &Wave, _: &Instruction) -> Result<(), Box<Fault>> {
        if !self.now.places.is_empty() {
            let released = self.shared.released();
            for place in self.now.places.drain(..) {
                if let Some(others) = released.get(&place) {
                    clock::merge(&mut self.waves[wave.id].read, others);
                }
            }
        }
        Ok(())
    }

    fn barrier(&mut self, waves: &[Wave]) -> Result<(), Box<Fault>> {
        debug_assert!(waves.iter().all(|wave| wave.state != State::Running));
        let mut clocks: Vec<Clock> = self.waves.iter().map(|state| state.clock.clone()).collect();
        Clock::meet(&mut clocks);
        self.waves.iter_mut().zip(clocks).for_each(|(state, clock)| state.clock = clock);
        Ok(())
    }
}

impl Observing<'_> {
    fn record(&self, wave: &Wave, access: &Access<'_>, lane: usize) -> Record {
        Record {
            group: self.group,
            time: self.waves[wave.id].clock.now(),
            code: self.now.code,
            wave: wave.id as u8,
            lane: lane as u8,
            way: self.way(wave, access),
        }
    }

    fn way(&self, wave: &Wave, access: &Access<'_>) -> Way {
        match access.kind {
            AccessKind::Atomic => Way::Atomic,
            _ if access.space == Space::Lds => Way::Plain,
            _ if self.now.coherent => Way::Atomic,
            AccessKind::Store if self.is_flag(wave, access) => Way::Flag,
            _ => Way::Plain,
        }
    }

    /// Whether a store may tell other workgroups that those before are done.
    fn is_flag(&self, wave: &Wave, access: &Access<'_>) -> bool {
        !self.waves[wave.id].storing && access.mask.is_power_of_two() && access.bytes <= 8
    }

    fn touch_of<'b>(&'b self, wave: &Wave, access: &Access<'_>, lane: usize) -> Touch<'b> {
        let data = if access.space == Space::Lds { self.now.accesses.min(1) } else { 0 };
        let data = self.now.data[data].or(self.now.data[0]);
        Touch {
            record: self.record(wave, access, lane),
            kind: access.kind,
            clock: &self.waves[wave.id].clock,
            value: data.filter(|_| access.kind == AccessKind::Store).map(|data| data.value(wave, lane)),
        }
    }

    fn touch_lds(&mut self, wave: &Wave, access: &Access<'_>) -> Option<(usize, Conflict)> {
        let mut cells = std::mem::replace(&mut self.lds, Cells::new());
        let mut found = None;
        for lane in lanes_of(access.mask) {
            let address = access.addresses[lane];
            // An access far outside stops the kernel by itself.
            if address < 1 << 20 {
                let touch = self.touch_of(wave, access, lane);
                let conflict = cells.touch(address, access.bytes.into(), &touch);
                found = found.or(conflict.map(|conflict| (lane, conflict)));
            }
        }
        self.lds = cells;
        found
    }

    fn touch_global(&self, wave: &Wave, access: &Access<'_>) -> Option<(usize, Conflict)> {
        let mut found = None;
        let mut held = None;
        for lane in lanes_of(access.mask) {
            let touch = self.touch_of(wave, access, lane);
            let (mut at, end) = (access.addresses[lane], access.addresses[lane] + u64::from(access.bytes));
            while at < end {
                let page = at / PAGE;
                let next = end.min((page + 1) * PAGE);
                if held.as_ref().is_none_or(|(number, _)| *number != page) {
                    drop(held.take());
                    held = Some((page, self.shared.pages.shard(at)));
                }
                let Some((_, shard)) = &mut held else { break };
                let cells = shard.entry(page).or_insert_with(Cells::new);
                // A value of 16 bytes is cut at a page's end only where it is not aligned.
                let whole =
                    Touch { value: touch.value.filter(|_| next - at == u64::from(access.bytes)), ..touch };
                if let Some(mut conflict) = cells.touch(at % PAGE, next - at, &whole) {
                    conflict.byte += page * PAGE;
                    found = found.or(Some((lane, conflict)));
                }
                at = next;
            }
        }
        found
    }

    /// What atomic operations and flags say about the order of other accesses.
    fn synchronize(&mut self, wave: &Wave, access: &Access<'_>) {
        let way = self.way(wave, access);
        let state = &mut self.waves[wave.id];
        let atomic = access.kind == AccessKind::Atomic;
        if access.space == Space::Lds {
            if atomic {
                state.clock.acquire(&self.lds_released);
                if !state.storing {
                    state.clock.publish(&mut self.lds_released);
                    state.clock.advance();
                }
            }
            return;
        }
        if way != Way::Plain && access.kind != AccessKind::Load && !state.storing {
            let mut released = self.shared.released();
            for lane in lanes_of(access.mask) {
                state.clock.publish(released.entry(access.addresses[lane]).or_default());
            }
            state.clock.advance();
        }
        if way == Way::Atomic && access.kind != AccessKind::Store {
            self.now.places.extend(lanes_of(access.mask).map(|lane| access.addresses[lane]));
        }
        state.storing |= access.kind == AccessKind::Store;
    }

    #[cold]
    fn report(&self, wave: &Wave, access: &Access<'_>, lane: usize, conflict: &Conflict) -> Box<Fault> {
        let Conflict { other, other_writes, byte } = conflict;
        let launch = &self.shared.launch;
        let (place, order) = match (access.space, other.group == self.group) {
            (Space::Lds, _) => ("LDS", "no barrier is between the two"),
            (_, true) => ("global memory", "no barrier is between the two"),
            (_, false) => ("global memory", "nothing orders the two workgroups"),
        };
        let does = |kind: AccessKind| match kind {
            AccessKind::Load => "reads",
            AccessKind::Store => "writes",
            AccessKind::Atomic => "changes",
        };
        Fault::check(format!(
            "a race: lane {lane} {} byte {byte:#x} of {place}, which lane {} of wave {} of workgroup {:?} {} by {}, and {order}",
            does(access.kind),
            other.lane,
            other.wave,
            launch.group(other.group),
            if *other_writes { "wrote" } else { "read" },
            launch.text(other.code.into(), wave.lanes),
        ))
    }
}
