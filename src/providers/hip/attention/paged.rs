//! PagedAttention and SparseAttention of com.microsoft: launches of `kernels/paged.hip`.

use std::ffi::CStr;
use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::ops::attention::paged::PagedAttention;
use crate::ops::attention::sparse::SparseAttention;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::super::fill::groups;
use super::super::launch::{GROUP, KernelName, Operand};
use super::super::{HipKernel, PlanBuilder};

#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct PagedParams {
    q: u64,
    k: u64,
    v: u64,
    keys: u64,
    values: u64,
    y: u64,
    changed: u64,
    parts_of_keys: u64,
    starts: u64,
    lengths: u64,
    table: u64,
    slots: u64,
    cosines: u64,
    sines: u64,
    sinks: u64,
    query_weight: u64,
    key_weight: u64,
    begins: u64,
    seen: u64,
    longest: u64,
    errors: u64,
    strides: [i64; 3],
    columns: [i64; 3],
    first: [i64; 3],
    tokens: u32,
    batch: u32,
    heads: u32,
    kv_heads: u32,
    group: u32,
    size: u32,
    v_size: u32,
    blocks: u32,
    rows: u32,
    pages: u32,
    queries: u32,
    by_length: u32,
    half: u32,
    cache_rows: u32,
    rotary_start: u32,
    interleaved: u32,
    layouts: u32,
    layout_rows: u32,
    layout_seen: u32,
    block: u32,
    causal: u32,
    window: i32,
    parts: u32,
    separate: u32,
    scale: f32,
    softcap: f32,
    epsilon: f32,
    splits: u32,
}

const _: () = assert!(size_of::<PagedParams>() == 352);

#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct CopyParams {
    from: u64,
    to: u64,
    bytes: u64,
    groups: u32,
    size: u32,
}

const _: () = assert!(size_of::<CopyParams>() == 32);

/// Workgroups that copy a cache, at most, and what each of their work items moves at a time.
const COPIES: usize = 1024;
const UNIT: usize = 16;
/// Work items that write a row, and columns of values that a workgroup sums.
const ROW_TEAM: usize = 32;
const COLUMNS: usize = 256;
/// Workgroups that a processor should have, keys from which on a part of them is worth one, and parts at most.
const RESIDENT: usize = 2;
const PART: usize = 256;
const MOST_PARTS: usize = 64;

pub(super) fn build_paged(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let (ty, names) = names(node)?;
    Ok(Box::new(Paged { form: Form::Paged(*node.op()), ty, names }))
}

pub(super) fn build_sparse(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let (ty, names) = names(node)?;
    Ok(Box::new(Paged { form: Form::Sparse(*node.op()), ty, names }))
}

/// The kernel that writes new rows, that of the attention, and the one that puts parts of the keys together.
fn names(node: &NodeContext<'_>) -> Result<(ElementType, [&'static CStr; 3]), OpError> {
    let ty = node.input(0).ok_or_else(|| node.no_kernel())?;
    let names = match ty {
        ElementType::F32 => [c"paged_rows_f32", c"paged_attention_f32", c"paged_join_f32"],
        ElementType::F16 => [c"paged_rows_f16", c"paged_attention_f16", c"paged_join_f16"],
        ElementType::BF16 => [c"paged_rows_bf16", c"paged_attention_bf16", c"paged_join_bf16"],
        _ => return Err(node.no_kernel()),
    };
    Ok((ty, names))
}

enum Form {
    Paged(PagedAttention),
    Sparse(SparseAttention),
}

struct Paged {
    form: Form,
    ty: ElementType,
    names: [&'static CStr; 3],
}

/// Parameters with what their addresses stand for.
type Addressed = (PagedParams, Vec<(usize, Operand)>);

macro_rules! at {
    ($field:ident) => {
        offset_of!(PagedParams, $field)
    };
}

impl HipKernel for Paged {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let input = |i: usize| inputs.get(i).copied().flatten().map(|input| input.shape);
        let addressed = match &self.form {
            Form::Paged(op) => paged(op, &input)?,
            Form::Sparse(op) => sparse(op, &input)?,
        };
        let Some((mut params, mut addresses)) = addressed else { return Ok(()) };
        let caches = if params.separate == 1 { &[1, 2][..] } else { &[1] };
        for &i in caches {
            let Some(shape) = input(2 + i) else { continue };
            let bytes = shape.iter().product::<usize>() * self.ty.size();
            let out = match outputs.get(i).is_some_and(Option::is_some) {
                true => Operand::Output(i),
                false => plan.scratch(bytes),
            };
            self.copy(plan, Operand::Input(2 + i), out, bytes)?;
            addresses.push((if i == 1 { at!(keys) } else { at!(values) }, out));
            if i == 1 && params.separate == 0 {
                addresses.push((at!(values), out));
            }
        }
        let tokens = params.tokens as usize;
        if params.parts > params.kv_heads * (1 + params.separate) {
            let elements = tokens * params.heads as usize * params.size as usize;
            addresses.push((at!(changed), plan.scratch(elements * self.ty.size())));
        }
        addresses.extend([(at!(errors), Operand::Errors), (at!(q), Operand::Input(0))]);
        let heads = params.heads as usize;
        params.group = (heads / (params.kv_heads as usize).max(1)) as u32;
        let rows = (tokens * params.parts as usize).div_ceil(GROUP as usize / ROW_TEAM);
        let kernel = |name| KernelName { family: "paged", name };
        plan.launch(kernel(self.names[0]), [rows, 1, 1], &params, &addresses)?;
        if outputs.first().copied().flatten().is_none() {
            return Ok(());
        }
        addresses.push((at!(y), Operand::Output(0)));
        let v_size = params.v_size as usize;
        let (queries, chunks) = (tokens * heads, v_size.div_ceil(COLUMNS));
        // What a sequence has room for: the lengths are known on the device alone.
        let room = (params.pages.min(params.blocks) as usize).saturating_mul(params.rows as usize);
        let wanted = RESIDENT * plan.provider.unit().compute_units / (queries * chunks).max(1);
        let splits = wanted.min(room / PART).clamp(1, MOST_PARTS);
        params.splits = splits as u32;
        if splits > 1 {
            let parts = plan.scratch(queries * splits * (2 + v_size) * size_of::<f32>());
            addresses.push((at!(parts_of_keys), parts));
        }
        plan.launch(kernel(self.names[1]), [queries, chunks, splits], &params, &addresses)?;
        match splits {
            1 => Ok(()),
            _ => plan.launch(kernel(self.names[2]), groups(queries * v_size), &params, &addresses),
        }
    }

    fn caches(&self) -> &[(usize, usize)] {
        &[(1, 3), (2, 4)]
    }
}

impl Paged {
    /// Brings a cache to where it goes; the launch does nothing where it is there already.
    fn copy(
        &self,
        plan: &mut PlanBuilder<'_>,
        from: Operand,
        to: Operand,
        bytes: usize,
    ) -> Result<(), OpError> {
        let groups = bytes.div_ceil(GROUP as usize * UNIT).min(COPIES);
        let (bytes, size) = (bytes as u64, self.ty.size() as u32);
        let params = CopyParams { bytes, groups: groups as u32, size, ..CopyParams::zeroed() };
        let addresses = [(offset_of!(CopyParams, from), from), (offset_of!(CopyParams, to), to)];
        let kernel = KernelName { family: "paged", name: c"paged_copy" };
        plan.launch(kernel, [groups, 1, 1], &params, &addresses)
    }
}

/// Where queries, keys and values of a token are: elements between tokens, and of the first one; with the inputs of keys
/// and values.
fn rows_of(params: &mut PagedParams, columns: usize, packed: bool, addresses: &mut Vec<(usize, Operand)>) {
    let [heads, kv_heads, size] = [params.heads, params.kv_heads, params.size].map(i64::from);
    let columns = columns as i64;
    if packed {
        params.columns = [columns; 3];
        params.first = [0, heads * size, (heads + kv_heads) * size];
        addresses.extend([(at!(k), Operand::Input(0)), (at!(v), Operand::Input(0))]);
    } else {
        params.columns = [columns, kv_heads * size, kv_heads * size];
        addresses.push((at!(k), Operand::Input(1)));
        if params.separate == 1 {
            addresses.push((at!(v), Operand::Input(2)));
        }
    }
}

fn paged<'a>(
    op: &PagedAttention,
    input: &dyn Fn(usize) -> Option<&'a [usize]>,
) -> Result<Option<Addressed>, OpError> {
    let (Some(&[tokens, columns]), Some(&[blocks, rows, kv_heads, _]), Some(&[batch, pages])) =
        (input(0), input(3), input(7))
    else {
        return Ok(None);
    };
    let packed = input(1).is_none();
    let size = op.size(columns, packed);
    let changed = op.rotary.is_some() || input(12).is_some();
    let separate = u32::from(!op.latent);
    let stride = (kv_heads * size) as i64;
    let (half, cache_rows) = rotation(op.rotary, input(8), input(9), size.saturating_sub(op.rotary_start))?;
    let mut params = PagedParams {
        strides: [rows as i64 * stride, stride, size as i64],
        tokens: tokens as u32,
        batch: batch as u32,
        heads: op.heads as u32,
        kv_heads: kv_heads as u32,
        size: size as u32,
        v_size: op.value_size.unwrap_or(size) as u32,
        blocks: blocks as u32,
        rows: rows as u32,
        pages: pages as u32,
        half,
        cache_rows,
        rotary_start: op.rotary_start as u32,
        interleaved: u32::from(op.rotary == Some(true)),
        causal: u32::from(op.causal),
        window: op.window.map_or(-1, |keys| keys.min(i32::MAX as usize) as i32),
        parts: kv_heads as u32 * (1 + separate) + if changed { op.heads as u32 } else { 0 },
        separate,
        scale: op.scale.unwrap_or(1.0 / (size as f32).sqrt()),
        softcap: op.softcap,
        epsilon: op.norm_epsilon,
        ..PagedParams::zeroed()
    };
    let mut addresses = Vec::new();
    rows_of(&mut params, columns, packed, &mut addresses);
    let operands = [
        (at!(starts), 5),
        (at!(lengths), 6),
        (at!(table), 7),
        (at!(cosines), 8),
        (at!(sines), 9),
        (at!(slots), 10),
        (at!(sinks), 11),
        (at!(query_weight), 12),
        (at!(key_weight), 13),
    ];
    given(&mut addresses, input, op.rotary.is_some(), [8, 9], &operands);
    Ok(Some((params, addresses)))
}

fn sparse<'a>(
    op: &SparseAttention,
    input: &dyn Fn(usize) -> Option<&'a [usize]>,
) -> Result<Option<Addressed>, OpError> {
    let (Some(&[batch, queries, columns]), Some(&[_, kv_heads, capacity, _])) = (input(0), input(3)) else {
        return Ok(None);
    };
    let (Some(&[layouts, begins]), Some(&[_, seen])) = (input(5), input(6)) else { return Ok(None) };
    let packed = input(1).is_none();
    let size = columns / if packed { op.heads + 2 * op.kv_heads } else { op.heads };
    let (half, cache_rows) = rotation(op.rotary, input(9), input(10), size)?;
    let changed = op.rotary.is_some();
    let plane = (capacity * size) as i64;
    let mut params = PagedParams {
        strides: [kv_heads as i64 * plane, size as i64, plane],
        tokens: (batch * queries) as u32,
        batch: batch as u32,
        heads: op.heads as u32,
        kv_heads: kv_heads as u32,
        size: size as u32,
        v_size: size as u32,
        blocks: batch as u32,
        rows: capacity as u32,
        pages: 1,
        queries: queries as u32,
        by_length: 1,
        half,
        cache_rows,
        interleaved: u32::from(op.rotary == Some(true)),
        layouts: layouts as u32,
        layout_rows: begins as u32 - 1,
        layout_seen: seen as u32,
        block: op.block as u32,
        causal: 1,
        window: -1,
        parts: kv_heads as u32 * 2 + if changed { op.heads as u32 } else { 0 },
        separate: 1,
        scale: op.scale.unwrap_or(1.0 / (size as f32).sqrt()),
        ..PagedParams::zeroed()
    };
    let mut addresses = Vec::new();
    rows_of(&mut params, columns, packed, &mut addresses);
    let operands = [
        (at!(begins), 5),
        (at!(seen), 6),
        (at!(longest), 7),
        (at!(lengths), 8),
        (at!(cosines), 9),
        (at!(sines), 10),
    ];
    given(&mut addresses, input, op.rotary.is_some(), [9, 10], &operands);
    Ok(Some((params, addresses)))
}

/// The addresses of inputs that are given; those of the rotation only if there is one.
fn given<'a>(
    addresses: &mut Vec<(usize, Operand)>,
    input: &dyn Fn(usize) -> Option<&'a [usize]>,
    rotates: bool,
    rotation: [usize; 2],
    operands: &[(usize, usize)],
) {
    let used = |i: usize| input(i).is_some() && (rotates || !rotation.contains(&i));
    addresses.extend(operands.iter().filter(|o| used(o.1)).map(|&(at, i)| (at, Operand::Input(i))));
}

/// Half of the elements that are rotated, and the rows of the cosines.
fn rotation(
    rotary: Option<bool>,
    cosines: Option<&[usize]>,
    sines: Option<&[usize]>,
    most: usize,
) -> Result<(u32, u32), OpError> {
    let (Some(_), Some(cosines), Some(sines)) = (rotary, cosines, sines) else { return Ok((0, 0)) };
    match *cosines {
        [rows, half] if cosines == sines && 2 * half <= most => Ok((half as u32, rows as u32)),
        _ => Err(OpError::Data(format!(
            "cos_cache and sin_cache have shapes {cosines:?} and {sines:?}; allowed are equal shapes of rank 2 with at \
             most {} columns",
            most / 2
        ))),
    }
}
