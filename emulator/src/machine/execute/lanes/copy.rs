//! Loads that go to LDS in place of registers.

use std::marker::PhantomData;

use crate::isa::sgpr;
use crate::machine::fault::Fault;
use crate::machine::group::{AccessKind, Group, Space};
use crate::machine::step::Action;
use crate::machine::wave::{Wave, lanes_of};

use super::element::{Load, LoadBuilder};
use super::{Place, Placed, Want, observe};

/// Builds the action that copies elements to LDS: from the byte that M0 and the instruction's offset say, a lane's
/// element behind the other. Elements are as long as in registers.
pub struct Copying<P, const LANES: usize> {
    pub place: P,
    pub offset: u64,
}

impl<P: Place, const LANES: usize> LoadBuilder for Copying<P, LANES> {
    type Output = Action;

    fn build<K: Load>(self) -> Action {
        let work = Copy::<K, P, LANES> { place: self.place, offset: self.offset, kind: PhantomData };
        Box::new(move |wave, group| work.run(wave, group))
    }
}

struct Copy<K, P, const LANES: usize> {
    place: P,
    offset: u64,
    kind: PhantomData<K>,
}

impl<K: Load, P: Place, const LANES: usize> Copy<K, P, LANES> {
    fn run(&self, wave: &mut Wave, group: &mut Group<'_>) -> Result<(), Box<Fault>> {
        let exec = wave.exec();
        if exec == 0 {
            return Ok(());
        }
        let want = Want { bytes: K::BYTES, kind: AccessKind::Load };
        let Placed { places, mask } = self.place.place::<LANES>(wave, group, want)?;
        let bytes = 4 * K::REGISTERS;
        let first = u64::from(wave.scalar[usize::from(sgpr::M0)] & 0xffff) + self.offset;
        let offsets: [u64; LANES] = std::array::from_fn(|lane| first + (lane * bytes) as u64);
        let store = Want { bytes, kind: AccessKind::Store };
        observe(wave, group, Space::Lds, store, exec, &offsets)?;
        for lane in lanes_of(exec) {
            let at = offsets[lane] as usize;
            let size = group.lds.len();
            let Some(to) = group.lds.get_mut(at..at + bytes) else {
                return Err(Fault::address(format!(
                    "{bytes} bytes at byte {at} of an LDS of {size} bytes, lane {lane}"
                )));
            };
            for (register, word) in to.chunks_exact_mut(4).enumerate() {
                let value = if mask >> lane & 1 == 0 {
                    0
                } else {
                    // SAFETY: the place checked the lane.
                    unsafe { K::read(places.pointer(lane, K::BYTES), register, 0) }
                };
                word.copy_from_slice(&value.to_le_bytes());
            }
        }
        Ok(())
    }
}
