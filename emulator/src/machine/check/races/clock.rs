//! What a wave knows to have happened before: vector clocks (Lamport, "Time, Clocks, and the Ordering of Events in a
//! Distributed System"; Mattern, "Virtual Time and Global States of Distributed Systems").

use std::collections::HashMap;
use std::sync::Arc;

/// Who did something, when by its own clock, and by which instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub group: u32,
    pub time: u32,
    /// In bytes from the beginning of the code.
    pub code: u32,
    pub wave: u8,
    pub lane: u8,
    pub way: Way,
}

/// How memory was touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Plain,
    /// A store that may be an atomic one: nothing tells before GFX940 and GFX12.
    Flag,
    Atomic,
}

impl Way {
    /// Whether accesses in two ways are no race: both may be atomic, and one surely is.
    pub fn goes_with(self, other: Way) -> bool {
        self != Way::Plain && other != Way::Plain && (self == Way::Atomic || other == Way::Atomic)
    }
}

/// Times of the waves of other workgroups.
pub type Others = HashMap<u32, Arc<[u32]>>;

/// The times of all waves up to which their work is known to be done.
#[derive(Clone, Default)]
pub struct Clock {
    group: u32,
    wave: usize,
    /// Of the waves of the same workgroup; its own is the present.
    own: Vec<u32>,
    others: Arc<Others>,
}

impl Clock {
    pub fn new(group: u32, wave: usize, waves: usize) -> Clock {
        Clock {
            group,
            wave,
            own: (0..waves).map(|it| u32::from(it == wave)).collect(),
            others: Arc::default(),
        }
    }

    pub fn now(&self) -> u32 {
        self.own[self.wave]
    }

    /// Whether what was recorded happened before.
    pub fn knows(&self, record: &Record) -> bool {
        let wave = usize::from(record.wave);
        if record.group == self.group {
            return wave == self.wave || self.own.get(wave).is_some_and(|&time| time >= record.time);
        }
        self.others
            .get(&record.group)
            .and_then(|times| times.get(wave))
            .is_some_and(|&time| time >= record.time)
    }

    /// Gives all that is known away. [`Clock::advance`] must follow, so that it does not cover what comes later.
    pub fn publish(&self, to: &mut Others) {
        merge(to, &self.others);
        merge_one(to, self.group, &self.own.as_slice().into());
    }

    /// Begins a new time.
    pub fn advance(&mut self) {
        self.own[self.wave] += 1;
    }

    /// Takes what others gave away.
    pub fn acquire(&mut self, from: &Others) {
        if let Some(times) = from.get(&self.group) {
            self.join(times);
        }
        let mut others = Others::clone(&self.others);
        merge(&mut others, from);
        others.remove(&self.group);
        self.others = Arc::new(others);
    }

    /// All waves of a workgroup know what each of them knows.
    pub fn meet(clocks: &mut [Clock]) {
        let mut own = vec![0; clocks.len()];
        let mut others = Others::new();
        for clock in clocks.iter() {
            own.iter_mut().zip(&clock.own).for_each(|(time, &other)| *time = (*time).max(other));
            merge(&mut others, &clock.others);
        }
        let others = Arc::new(others);
        for (wave, clock) in clocks.iter_mut().enumerate() {
            clock.own.clone_from(&own);
            clock.own[wave] += 1;
            clock.others = Arc::clone(&others);
        }
    }

    fn join(&mut self, times: &[u32]) {
        let wave = self.wave;
        for (other, (time, &given)) in self.own.iter_mut().zip(times).enumerate() {
            if other != wave {
                *time = (*time).max(given);
            }
        }
    }
}

/// Adds what is known to what others know.
pub fn merge(to: &mut Others, from: &Others) {
    from.iter().for_each(|(&group, times)| merge_one(to, group, times));
}

fn merge_one(to: &mut Others, group: u32, times: &Arc<[u32]>) {
    let known = to.entry(group).or_insert_with(|| Arc::clone(times));
    if !Arc::ptr_eq(known, times) {
        *known = known.iter().zip(times.iter()).map(|(a, b)| *a.max(b)).collect();
    }
}
