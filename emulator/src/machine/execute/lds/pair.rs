//! DS instructions with two addresses: loads, stores and exchanges of two elements.

use std::marker::PhantomData;

use crate::isa::Instruction;

use crate::machine::execute::lanes::element::{Load, Store, Words};
use crate::machine::execute::lanes::transfer::{load, store};
use crate::machine::execute::lanes::{Place, Places, Want};
use crate::machine::execute::operands::vector;
use crate::machine::fault::Fault;
use crate::machine::group::{AccessKind, Group};
use crate::machine::native::{self, Work};
use crate::machine::step::Action;
use crate::machine::wave::{Wave, lanes_of};

use super::address::Address;

/// What it does; `None` for names of other instructions. `kind` is the name without `ds_`.
pub fn action<const LANES: usize>(
    instruction: &Instruction,
    kind: &str,
) -> Result<Option<Action>, Box<Fault>> {
    let far = kind.contains("_stride64");
    let plain = kind.replacen("_stride64", "", 1);
    Ok(Some(match plain.as_str() {
        "load_2addr_b32" => load_pair::<Words<1>, LANES>(instruction, far)?,
        "load_2addr_b64" => load_pair::<Words<2>, LANES>(instruction, far)?,
        "store_2addr_b32" => store_pair::<Words<1>, LANES>(instruction, far)?,
        "store_2addr_b64" => store_pair::<Words<2>, LANES>(instruction, far)?,
        "storexchg_2addr_rtn_b32" => exchange_pair::<Words<1>, LANES>(instruction, far)?,
        "storexchg_2addr_rtn_b64" => exchange_pair::<Words<2>, LANES>(instruction, far)?,
        _ => return Ok(None),
    }))
}

/// Registers and places of an instruction with two addresses; those of a load have no sources.
struct Pair<K, const LANES: usize> {
    places: [Address; 2],
    sources: Option<[usize; 2]>,
    to: Option<usize>,
    kind: PhantomData<K>,
}

impl<K: Load, const LANES: usize> Pair<K, LANES> {
    fn new(instruction: &Instruction, far: bool, stores: bool, loads: bool) -> Result<Self, Box<Fault>> {
        let memory = &instruction.modifiers.memory;
        // Offsets count elements, or 64 of them.
        let unit = K::BYTES as u64 * if far { 64 } else { 1 };
        let offsets = [memory.offset as u64 & 0xff, u64::from(memory.offset1)];
        let [first, second] = offsets.map(|offset| Address::with_offset(instruction, offset * unit));
        let [_, data, other, _] = instruction.sources;
        let sources = match stores {
            true => {
                Some([vector(instruction, data, K::REGISTERS)?, vector(instruction, other, K::REGISTERS)?])
            }
            false => None,
        };
        let to = match loads {
            true => Some(vector(instruction, instruction.destinations[0], 2 * K::REGISTERS)?),
            false => None,
        };
        Ok(Pair { places: [first?, second?], sources, to, kind: PhantomData })
    }
}

fn load_pair<K: Load, const LANES: usize>(
    instruction: &Instruction,
    far: bool,
) -> Result<Action, Box<Fault>> {
    Ok(native::action(LoadPair(Pair::<K, LANES>::new(instruction, far, false, true)?)))
}

struct LoadPair<K, const LANES: usize>(Pair<K, LANES>);

impl<K: Load, const LANES: usize> Work for LoadPair<K, LANES> {
    #[inline(always)]
    fn run(&self, wave: &mut Wave, group: &mut Group<'_>) -> Result<(), Box<Fault>> {
        let (exec, Some(to)) = (wave.exec(), self.0.to) else { return Ok(()) };
        if exec == 0 {
            return Ok(());
        }
        let [first, second] = &self.0.places;
        let (first, second) =
            (first.near::<LANES>(wave, group, K::BYTES), second.near::<LANES>(wave, group, K::BYTES));
        if let (Some(first), Some(second)) = (first, second) {
            let (low, high) = wave.vector.rows_mut()[to..][..2 * K::REGISTERS].split_at_mut(K::REGISTERS);
            // SAFETY: the places checked all lanes.
            unsafe {
                first.load::<K>(low);
                second.load::<K>(high);
            }
            return Ok(());
        }
        let want = Want { bytes: K::BYTES, kind: AccessKind::Load };
        let first = self.0.places[0].place::<LANES>(wave, group, want)?;
        let second = self.0.places[1].place::<LANES>(wave, group, want)?;
        // SAFETY: the places checked all active lanes.
        unsafe {
            load::<K, LANES>(wave.vector.rows_mut(), to, &first.places, exec);
            load::<K, LANES>(wave.vector.rows_mut(), to + K::REGISTERS, &second.places, exec);
        }
        Ok(())
    }
}

fn store_pair<K: Load + Store, const LANES: usize>(
    instruction: &Instruction,
    far: bool,
) -> Result<Action, Box<Fault>> {
    Ok(native::action(StorePair(Pair::<K, LANES>::new(instruction, far, true, false)?)))
}

struct StorePair<K, const LANES: usize>(Pair<K, LANES>);

impl<K: Load + Store, const LANES: usize> Work for StorePair<K, LANES> {
    #[inline(always)]
    fn run(&self, wave: &mut Wave, group: &mut Group<'_>) -> Result<(), Box<Fault>> {
        let (exec, Some(sources)) = (wave.exec(), self.0.sources) else { return Ok(()) };
        if exec == 0 {
            return Ok(());
        }
        let bytes = <K as Store>::BYTES;
        let [first, second] = &self.0.places;
        if let (Some(first), Some(second)) =
            (first.near::<LANES>(wave, group, bytes), second.near::<LANES>(wave, group, bytes))
        {
            let rows = wave.vector.rows();
            // SAFETY: the places checked all lanes.
            unsafe {
                first.store::<K>(&rows[sources[0]..][..<K as Store>::REGISTERS]);
                second.store::<K>(&rows[sources[1]..][..<K as Store>::REGISTERS]);
            }
            return Ok(());
        }
        let want = Want { bytes, kind: AccessKind::Store };
        let first = self.0.places[0].place::<LANES>(wave, group, want)?;
        let second = self.0.places[1].place::<LANES>(wave, group, want)?;
        // SAFETY: the places checked all active lanes.
        unsafe {
            store::<K, LANES>(wave.vector.rows(), sources[0], &first.places, exec);
            store::<K, LANES>(wave.vector.rows(), sources[1], &second.places, exec);
        }
        Ok(())
    }
}

fn exchange_pair<K: Load + Store, const LANES: usize>(
    instruction: &Instruction,
    far: bool,
) -> Result<Action, Box<Fault>> {
    let pair = Pair::<K, LANES>::new(instruction, far, true, true)?;
    Ok(Box::new(move |wave, group| exchange(&pair, wave, group)))
}

/// Lanes one after the other: each loads both elements and stores its own in their place.
fn exchange<K: Load + Store, const LANES: usize>(
    pair: &Pair<K, LANES>,
    wave: &mut Wave,
    group: &mut Group<'_>,
) -> Result<(), Box<Fault>> {
    let (exec, Some(sources), Some(to)) = (wave.exec(), pair.sources, pair.to) else { return Ok(()) };
    if exec == 0 {
        return Ok(());
    }
    let want = Want { bytes: <K as Store>::BYTES, kind: AccessKind::Atomic };
    let words = <K as Store>::REGISTERS;
    let mut old = [[0; LANES]; 4];
    for (half, place) in pair.places.iter().enumerate() {
        let placed = place.place::<LANES>(wave, group, want)?;
        for lane in lanes_of(exec) {
            let place = Places::Each([placed.places.pointer(lane, want.bytes); LANES]);
            // SAFETY: the place checked all active lanes.
            unsafe {
                load::<K, LANES>(&mut old, half * words, &place, 1 << lane);
                store::<K, LANES>(wave.vector.rows(), sources[half], &place, 1 << lane);
            }
        }
    }
    for lane in lanes_of(exec) {
        for (register, row) in old[..2 * words].iter().enumerate() {
            wave.vector.set(to + register, lane, row[lane]);
        }
    }
    Ok(())
}
