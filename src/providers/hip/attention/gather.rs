//! Queries, keys and values brought to where attention reads them, in one launch: after those of a cache, with
//! their bias, normalised and rotated.

use std::ffi::CStr;
use std::mem::{offset_of, size_of};

use bytemuck::Zeroable;

use crate::ops::OpError;
use crate::tensor::ElementType;

use super::super::PlanBuilder;
use super::super::launch::{GROUP, KernelName, Operand};
use super::heads::Heads;
use super::params::{GatherParams, GatherPart};

/// `GatherFlags` of the kernel.
const FIRST: u32 = 1;
const WHOLE: u32 = 2;
const ROTATE: u32 = 4;
const LENGTHS: u32 = 8;

/// Queries, keys or values, and what becomes of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) fresh: Heads,
    /// Where they go: without gaps, with rows for all that is to be kept.
    pub(super) out: Heads,
    /// Whether they come after no past in `out`, as queries do.
    pub(super) no_past: bool,
    pub(super) past: Option<Heads>,
    /// Where the elements to add to a row of all heads begin.
    pub(super) bias: Option<(Operand, usize)>,
    /// What the elements of a normalised row are multiplied with.
    pub(super) weight: Option<Operand>,
    pub(super) rotates: bool,
    /// Whether rows of the past behind the new ones are kept; else they are zero.
    pub(super) whole: bool,
    /// Rows of `out` that attention multiplies, seen or not; 0 where it leaves out the blocks of 128 rows behind a
    /// sample's last key.
    pub(super) used: usize,
}

impl Part {
    pub(super) fn new(fresh: Heads, out: Heads) -> Self {
        Part {
            fresh,
            out,
            no_past: false,
            past: None,
            bias: None,
            weight: None,
            rotates: false,
            whole: false,
            used: out.rows,
        }
    }
}

/// How many keys each sample has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    /// The index of each sample's last key.
    pub(super) last: Operand,
    /// Whether the first of all positions counts, for the first row of each sample.
    pub(super) prompt: bool,
    pub(super) allowed: [usize; 2],
    /// The number of keys of each sample, as attention reads it.
    pub(super) out: Operand,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Rotation {
    pub(super) cosines: Operand,
    pub(super) sines: Operand,
    /// One for each new row; of a prompt the first one counts.
    pub(super) positions: Option<Operand>,
    /// Columns and rows of the caches.
    pub(super) half: usize,
    pub(super) rows: usize,
    pub(super) interleaved: bool,
}

/// One launch for up to three parts.
#[derive(Clone, Debug)]
pub(super) struct Gather {
    pub(super) ty: ElementType,
    pub(super) batch: usize,
    pub(super) parts: Vec<Part>,
    /// Rows of the past that count, where lengths do not tell.
    pub(super) start: usize,
    pub(super) lengths: Option<Lengths>,
    pub(super) rotation: Option<Rotation>,
    pub(super) epsilon: f32,
}

impl Gather {
    pub(super) fn plan(&self, plan: &mut PlanBuilder<'_>) -> Result<(), OpError> {
        let name: &'static CStr = match self.ty {
            ElementType::F16 => c"heads_f16",
            ElementType::BF16 => c"heads_bf16",
            ElementType::F64 => c"heads_f64",
            _ => c"heads_f32",
        };
        let mut p = GatherParams::zeroed();
        let mut addresses = Vec::new();
        p.start = self.start as u32;
        p.epsilon = self.epsilon;
        if let Some(lengths) = self.lengths {
            p.prompt = u32::from(lengths.prompt);
            [p.least, p.most] = lengths.allowed.map(|n| n as u32);
            addresses.extend([
                (offset_of!(GatherParams, last), lengths.last),
                (offset_of!(GatherParams, lengths), lengths.out),
                (offset_of!(GatherParams, errors), Operand::Errors),
            ]);
        }
        if let Some(rotation) = self.rotation {
            (p.half, p.cache_rows) = (rotation.half as u32, rotation.rows as u32);
            p.interleaved = u32::from(rotation.interleaved);
            addresses.push((offset_of!(GatherParams, cosines), rotation.cosines));
            addresses.push((offset_of!(GatherParams, sines), rotation.sines));
            addresses.extend(rotation.positions.map(|at| (offset_of!(GatherParams, positions), at)));
        }
        // Of quantized caches the new rows alone are gathered, as queries are.
        let keys = self.parts.iter().position(|part| !part.no_past).unwrap_or(0);
        let mut groups = 0;
        for (i, part) in self.parts.iter().enumerate() {
            let from = offset_of!(GatherParams, parts) + i * size_of::<GatherPart>();
            p.parts[i] = self.part(part, from, &mut addresses);
            if self.lengths.is_some() && keys == i {
                p.parts[i].flags |= LENGTHS;
            }
            let items = (p.parts[i].count / u64::from(p.parts[i].step)) as usize;
            groups = groups.max(items.div_ceil(GROUP as usize));
        }
        let kernel = KernelName { family: "heads", name };
        plan.launch(kernel, [groups, self.parts.len(), 1], &p, &addresses)
    }

    /// The parameters of one part, which are at `from` among those of the launch.
    fn part(&self, part: &Part, from: usize, addresses: &mut Vec<(usize, Operand)>) -> GatherPart {
        let Part { fresh, out, past, .. } = *part;
        let bytes = |elements: usize| (elements * self.ty.size()) as u64;
        let pack = 16 / self.ty.size();
        let flag = |set: bool, flag: u32| if set { flag } else { 0 };
        let mut address = |field: usize, at: Operand| addresses.push((from + field, at));
        address(offset_of!(GatherPart, fresh), fresh.at);
        address(offset_of!(GatherPart, out), out.at);
        if let Some(past) = past {
            address(offset_of!(GatherPart, past), past.at);
        }
        if let Some((bias, _)) = part.bias {
            address(offset_of!(GatherPart, bias), bias);
        }
        if let Some(weight) = part.weight {
            address(offset_of!(GatherPart, weight), weight);
        }
        GatherPart {
            past: past.map_or(0, |past| bytes(past.offset)),
            fresh: bytes(fresh.offset),
            bias: part.bias.map_or(0, |(_, offset)| bytes(offset)),
            weight: 0,
            out: bytes(out.offset),
            count: (self.batch * out.strides[0]) as u64,
            strides: fresh.strides.map(|s| s as i64),
            heads: out.heads as u32,
            size: out.size as u32,
            capacity: out.rows as u32,
            past_rows: past.map_or(0, |past| past.rows) as u32,
            rows: fresh.rows as u32,
            used: part.used as u32,
            flags: flag(part.no_past, FIRST)
                | flag(part.whole, WHOLE)
                | flag(part.rotates && self.rotation.is_some(), ROTATE),
            step: if out.size.is_multiple_of(pack) { pack as u32 } else { 1 },
        }
    }
}
