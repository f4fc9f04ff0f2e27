//! Addresses of buffer instructions: resources, their offsets and what lies outside of them.

use crate::isa::{Generation, Instruction, Operand, Source};

use crate::machine::execute::lanes::{Place, Placed, Places, Want, add_register, all};
use crate::machine::execute::operands::{optional_vector, scalar};
use crate::machine::fault::Fault;
use crate::machine::group::Group;
use crate::machine::step::Setting;
use crate::machine::wave::{PRIVATE_APERTURE, Wave};

use super::address::{global_places, scratch_places};

/// How a buffer instruction finds its elements (RDNA3 ISA, "Buffer Addressing"; CDNA3 ISA, "Buffer Addressing").
pub struct Buffer {
    generation: Generation,
    /// An index, then an offset, as far as they are used.
    index: Option<usize>,
    vector_offset: Option<usize>,
    resource: u8,
    scalar_offset: Source,
    offset: u32,
}

/// The four words of a resource, taken apart.
pub struct Resource {
    pub base: u64,
    pub stride: u32,
    pub records: u32,
    /// Elements of neighbouring records lie beside each other.
    pub swizzled: bool,
    /// GFX10 and later: what counts as outside (OOB_SELECT).
    check: u32,
}

impl Resource {
    pub fn new(generation: Generation, words: [u32; 4]) -> Resource {
        let [low, high, records, flags] = words;
        // The bit below says on older targets how caches are used.
        let swizzle = if generation < Generation::Gfx11 { high >> 31 } else { high >> 30 };
        Resource {
            base: u64::from(low) | u64::from(high & 0xffff) << 32,
            stride: high >> 16 & 0x3fff,
            records,
            swizzled: swizzle != 0,
            check: flags >> 28 & 3,
        }
    }

    /// Whether an element of `bytes` bytes lies within the buffer. `offset` is without the scalar offset.
    fn contains(
        &self,
        generation: Generation,
        index: Option<u32>,
        offset: u32,
        scalar_offset: u32,
        bytes: u32,
    ) -> bool {
        let end = u64::from(offset) + u64::from(bytes);
        let record = index.unwrap_or(0) < self.records;
        if generation < Generation::Gfx10 {
            if self.stride != 0 && index.is_some() {
                return record;
            }
            let size = u64::from(self.records) * u64::from(self.stride.max(1));
            return end + u64::from(scalar_offset) <= size;
        }
        match self.check {
            0 => record && end <= u64::from(self.stride),
            1 => record,
            2 => self.records != 0,
            _ => end <= u64::from(self.records),
        }
    }
}

impl Buffer {
    pub fn new(instruction: &Instruction, setting: Setting) -> Result<Buffer, Box<Fault>> {
        let [address, resource, scalar_offset, _] = instruction.sources;
        let memory = &instruction.modifiers.memory;
        let count = usize::from(memory.idxen) + usize::from(memory.offen);
        let first = match count {
            0 => None,
            _ => optional_vector(instruction, Operand { registers: count as u8, ..address }, count)?,
        };
        let offset_register = first.map(|first| first + usize::from(memory.idxen));
        Ok(Buffer {
            generation: setting.target.generation,
            index: first.filter(|_| memory.idxen),
            vector_offset: offset_register.filter(|_| memory.offen),
            resource: scalar(instruction, resource, 4)?,
            scalar_offset: scalar_offset.source,
            offset: memory.offset as u32,
        })
    }

    fn words(&self, wave: &Wave) -> [u32; 4] {
        std::array::from_fn(|i| wave.scalar[usize::from(self.resource) + i])
    }
}

/// Whether a resource stands for the scratch of the wave's lanes.
fn is_scratch(words: [u32; 4]) -> bool {
    words[..3] == [0, PRIVATE_APERTURE, u32::MAX]
}

impl Place for Buffer {
    const SHARED: bool = true;

    #[inline(always)]
    fn place<const LANES: usize>(
        &self,
        wave: &mut Wave,
        group: &mut Group<'_>,
        want: Want,
    ) -> Result<Placed<LANES>, Box<Fault>> {
        let exec = wave.exec();
        let words = self.words(wave);
        let scalar_offset = wave.read32(self.scalar_offset)?;
        let mut offsets = [self.offset; LANES];
        add_register(&mut offsets, wave, self.vector_offset);
        if is_scratch(words) {
            // Its scalar offset counts the bytes of all lanes.
            let more = scalar_offset / LANES as u32;
            let offsets = offsets.map(|offset| offset.wrapping_add(more));
            let places = scratch_places(wave, group, want, exec, &offsets)?;
            return Ok(Placed { places, mask: exec });
        }
        let resource = Resource::new(self.generation, words);
        if resource.swizzled {
            return Err(Fault::instruction("a swizzled buffer, which the emulator does not have"));
        }
        let bytes = want.bytes as u32;
        let mut mask = 0;
        let mut addresses = [0; LANES];
        let base = resource.base.wrapping_add(u64::from(scalar_offset));
        for lane in 0..LANES {
            let index = self.index.map(|register| wave.vector.get(register, lane));
            let offset = offsets[lane];
            let inside = resource.contains(self.generation, index, offset, scalar_offset, bytes);
            mask |= u64::from(inside) << lane;
            let record = u64::from(index.unwrap_or(0)) * u64::from(resource.stride);
            addresses[lane] = base.wrapping_add(record).wrapping_add(u64::from(offset));
        }
        let mask = mask & exec;
        if mask == 0 {
            return Ok(Placed { places: Places::Each([std::ptr::null_mut(); LANES]), mask });
        }
        if mask != all::<LANES>() {
            let first = addresses[mask.trailing_zeros() as usize];
            for (lane, address) in addresses.iter_mut().enumerate() {
                *address = if mask >> lane & 1 == 0 { first } else { *address };
            }
        }
        let places = global_places(wave, group, want, mask, &addresses, false)?;
        Ok(Placed { places, mask })
    }
}
