//! PagedAttention and SparseAttention on a device against the CPU.

use crate::graph::Attribute;
use crate::tensor::{ElementType, Value};

use super::super::super::testing::data::{between, tensor, tolerance};
use super::super::super::testing::{both_in, node, on_cpu, on_device, provider};

const ALL: [ElementType; 3] = [ElementType::F32, ElementType::F16, ElementType::BF16];

fn i32s(shape: &[usize], elements: &[i32]) -> Option<Value> {
    tensor(shape, elements.iter().copied())
}

fn int(name: &'static str, x: usize) -> (&'static str, Attribute) {
    (name, Attribute::Int(x as i64))
}

#[derive(Clone, Copy)]
struct Paged {
    heads: [usize; 2],
    size: usize,
    rows: usize,
    /// Keys of the past, and new tokens, of each sequence.
    sequences: &'static [(usize, usize)],
    packed: bool,
    rotary: Option<bool>,
    norm: bool,
    sinks: bool,
    slots: bool,
    latent: Option<[usize; 2]>,
    more: &'static [(&'static str, i64)],
    softcap: f32,
    outputs: usize,
}

const PLAIN: Paged = Paged {
    heads: [4, 2],
    size: 16,
    rows: 16,
    sequences: &[(0, 5), (20, 1), (3, 21)],
    packed: false,
    rotary: None,
    norm: false,
    sinks: false,
    slots: false,
    latent: None,
    more: &[],
    softcap: 0.0,
    outputs: 3,
};

impl Paged {
    fn tokens(&self) -> usize {
        self.sequences.iter().map(|s| s.1).sum()
    }

    fn pages(&self) -> usize {
        self.sequences.iter().map(|(past, new)| (past + new).div_ceil(self.rows)).max().unwrap_or(0) + 1
    }

    /// Blocks backwards, every other one; what is not used leads nowhere.
    fn table(&self) -> Vec<i32> {
        let (pages, count) = (self.pages(), self.sequences.len() * self.pages());
        let block = |i: usize| if i % pages == pages - 1 { -5 } else { 2 * (count - 1 - i) as i32 + 1 };
        (0..count).map(block).collect()
    }

    fn attributes(&self) -> Vec<(&'static str, Attribute)> {
        let mut given = vec![int("num_heads", self.heads[0]), int("kv_num_heads", self.heads[1])];
        given.push(("softcap", Attribute::Float(self.softcap)));
        given.push(("scale", Attribute::Float(0.4)));
        given.extend(self.more.iter().map(|&(name, x)| (name, Attribute::Int(x))));
        if let Some(interleaved) = self.rotary {
            given.extend([int("do_rotary", 1), int("rotary_interleaved", interleaved.into())]);
        }
        if let Some([value, start]) = self.latent {
            given.push(("kv_cache_layout", Attribute::String(b"LATENT".to_vec())));
            given.extend([int("v_head_size", value), int("rotary_offset", start)]);
        }
        given
    }

    fn inputs(&self, ty: ElementType) -> Vec<Option<Value>> {
        let &Paged { heads: [heads, kv_heads], size, rows, .. } = self;
        let (tokens, count) = (self.tokens(), self.sequences.len());
        let x = |shape: &[usize], seed| between(ty, shape, [-1.0, 1.0], seed);
        let columns = if self.packed { heads + 2 * kv_heads } else { heads } * size;
        let kv = |seed| if self.packed { None } else { x(&[tokens, kv_heads * size], seed) };
        let blocks = 2 * count * self.pages();
        let cache = |seed| x(&[blocks, rows, kv_heads, size], seed);
        let mut starts = vec![0];
        self.sequences.iter().for_each(|s| starts.push(starts[starts.len() - 1] + s.1 as i32));
        let pasts: Vec<i32> = self.sequences.iter().map(|s| s.0 as i32).collect();
        let angles = |seed| {
            let half = self.latent.map_or(size / 2 - usize::from(size > 16), |latent| (size - latent[1]) / 2);
            self.rotary.and_then(|_| x(&[self.sequences.iter().map(|s| s.0 + s.1).max()?, half], seed))
        };
        let slot = |i: usize| if i % 5 == 3 { -1 } else { ((i * 7 + 3) % (blocks * rows)) as i32 };
        let slots: Vec<i32> = (0..tokens).map(slot).collect();
        let weight = |seed| if self.norm { between(ty, &[size], [0.5, 1.5], seed) } else { None };
        let joint = self.latent.is_some();
        vec![
            x(&[tokens, columns], 1),
            kv(2),
            kv(3).filter(|_| !joint),
            cache(4),
            cache(5).filter(|_| !joint),
            i32s(&[count + 1], &starts),
            i32s(&[count], &pasts),
            i32s(&[count, self.pages()], &self.table()),
            angles(6),
            angles(7),
            if self.slots { i32s(&[tokens], &slots) } else { None },
            if self.sinks { x(&[heads], 8) } else { None },
            weight(9),
            weight(10),
        ]
    }

    fn check(&self, what: &str, ty: ElementType) {
        let (attributes, inputs) = (self.attributes(), self.inputs(ty));
        if let Some(out) = both_in("com.microsoft", "PagedAttention", 1, &attributes, &inputs, self.outputs) {
            out.assert_close(&format!("PagedAttention {what} {ty}"), tolerance(ty));
        }
    }
}

#[test]
fn paged_attention() {
    let step = Paged { sequences: &[(70, 1), (0, 1), (33, 1), (15, 1)], ..PLAIN };
    let everything =
        Paged { rotary: Some(false), norm: true, sinks: true, softcap: 2.0, packed: true, ..PLAIN };
    let latent =
        Paged { heads: [4, 1], size: 24, latent: Some([16, 16]), rotary: Some(false), outputs: 2, ..PLAIN };
    for ty in ALL {
        PLAIN.check("plain", ty);
        everything.check("everything", ty);
        step.check("step", ty);
        latent.check("latent", ty);
    }
    let cases = [
        ("packed", Paged { packed: true, ..PLAIN }),
        ("y alone", Paged { outputs: 1, ..PLAIN }),
        ("pairs", Paged { rotary: Some(true), size: 24, ..PLAIN }),
        ("window of 0", Paged { more: &[("local_window_size", 0)], ..PLAIN }),
        ("window", Paged { more: &[("local_window_size", 9)], ..step }),
        ("both ways", Paged { more: &[("is_causal", 0)], ..PLAIN }),
        ("both ways, window", Paged { more: &[("is_causal", 0), ("local_window_size", 4)], ..PLAIN }),
        ("softcap", Paged { softcap: 1.5, ..PLAIN }),
        ("sinks", Paged { sinks: true, ..step }),
        ("normalised", Paged { norm: true, ..PLAIN }),
        ("slots", Paged { slots: true, ..everything }),
        ("group of 8", Paged { heads: [8, 1], size: 64, ..step }),
        ("odd sizes", Paged { heads: [3, 1], size: 13, rows: 5, ..PLAIN }),
        ("large heads", Paged { heads: [2, 1], size: 300, ..PLAIN }),
        ("largest heads", Paged { heads: [1, 1], size: 1100, sequences: &[(3, 2)], ..PLAIN }),
        ("no new tokens", Paged { sequences: &[(5, 0), (20, 2), (7, 0)], ..PLAIN }),
        ("no token at all", Paged { sequences: &[(5, 0), (0, 0)], ..PLAIN }),
        ("far", Paged { sequences: &[(500, 1)], heads: [2, 1], size: 128, ..PLAIN }),
        ("parts of the keys", Paged { sequences: &[(900, 1), (30, 2), (0, 1)], heads: [2, 1], ..PLAIN }),
        (
            "parts in a window",
            Paged { more: &[("local_window_size", 300)], sequences: &[(900, 1), (3, 1)], ..everything },
        ),
        ("parts of latent keys", Paged { sequences: &[(700, 1)], heads: [1, 1], ..latent }),
        ("blocks of one key", Paged { rows: 1, sequences: &[(3, 2), (0, 4)], ..PLAIN }),
    ];
    for (what, case) in cases {
        case.check(what, ElementType::F32);
    }
    Paged { size: 128, heads: [4, 2], ..everything }.check("large", ElementType::F16);
}

#[derive(Clone, Copy)]
struct Sparse {
    heads: [usize; 2],
    size: usize,
    rows: usize,
    room: usize,
    lengths: [i32; 2],
    total: i32,
    packed: bool,
    rotary: Option<bool>,
    layouts: usize,
    block: usize,
}

impl Sparse {
    fn attributes(&self) -> Vec<(&'static str, Attribute)> {
        let mut given = vec![int("num_heads", self.heads[0]), int("kv_num_heads", self.heads[1])];
        given.push(int("sparse_block_size", self.block));
        if let Some(interleaved) = self.rotary {
            given.extend([int("do_rotary", 1), int("rotary_interleaved", interleaved.into())]);
        }
        given
    }

    fn inputs(&self, ty: ElementType) -> Vec<Option<Value>> {
        let &Sparse { heads: [heads, kv_heads], size, rows, room, .. } = self;
        let x = |shape: &[usize], seed| between(ty, shape, [-1.0, 1.0], seed);
        let columns = if self.packed { heads + 2 * kv_heads } else { heads } * size;
        let kv = |seed| if self.packed { None } else { x(&[2, rows, kv_heads * size], seed) };
        let past = |seed| x(&[2, kv_heads, room, size], seed);
        let blocks = room.div_ceil(self.block);
        let (mut begins, mut seen, most) = (Vec::new(), Vec::new(), blocks * (blocks + 1) / 2);
        for layout in 0..self.layouts {
            let first = seen.len();
            for row in 0..blocks {
                begins.push((seen.len() - first) as i32);
                let sees = |&c: &usize| c == row || (row + c + layout).is_multiple_of(3);
                seen.extend((0..=row).filter(sees).map(|c| c as i32));
            }
            begins.push((seen.len() - first) as i32);
            seen.resize(first + most, -1);
        }
        let angles = |seed| self.rotary.and_then(|_| x(&[room, size / 2], seed));
        vec![
            x(&[2, rows, columns], 1),
            kv(2),
            kv(3),
            past(4),
            past(5),
            i32s(&[self.layouts, blocks + 1], &begins),
            i32s(&[self.layouts, most], &seen),
            i32s(&[1], &[self.total]),
            i32s(&[2], &self.lengths),
            angles(6),
            angles(7),
        ]
    }
}

#[test]
fn sparse_attention() {
    let prompt = Sparse {
        heads: [4, 2],
        size: 16,
        rows: 40,
        room: 64,
        lengths: [40, 23],
        total: 40,
        packed: false,
        rotary: None,
        layouts: 2,
        block: 16,
    };
    let step = Sparse { rows: 1, room: 300, lengths: [290, 133], total: 290, ..prompt };
    let cases = [
        ("prompt", prompt),
        ("one layout", Sparse { layouts: 1, rotary: Some(false), ..prompt }),
        ("packed", Sparse { packed: true, rotary: Some(true), layouts: 4, ..prompt }),
        ("step", step),
        ("step of a group", Sparse { heads: [6, 1], layouts: 3, rotary: Some(false), size: 64, ..step }),
        ("rows", Sparse { rows: 9, block: 32, packed: true, ..step }),
        ("blocks of 128", Sparse { rows: 3, block: 128, ..step }),
        ("parts", Sparse { room: 1200, lengths: [1111, 40], total: 1111, heads: [2, 2], ..step }),
    ];
    for ((what, case), ty) in cases.into_iter().flat_map(|case| ALL.map(|ty| (case, ty))) {
        let (attributes, inputs) = (case.attributes(), case.inputs(ty));
        if let Some(out) = both_in("com.microsoft", "SparseAttention", 1, &attributes, &inputs, 3) {
            out.assert_close(&format!("SparseAttention {what} {ty}"), tolerance(ty));
        }
    }
}

/// Numbers that lead out of the tensors are told, whichever kernel meets them.
#[test]
fn wrong_numbers() {
    let Some(provider) = provider(&[]) else { return };
    let refuse =
        |what: &str, name: &str, attributes: &[(&str, Attribute)], inputs: &[Option<Value>], at, wrong| {
            let node = node("com.microsoft", name, 1, attributes, inputs, 3);
            let like = on_cpu(&node, inputs);
            let mut inputs = inputs.to_vec();
            inputs[at] = wrong;
            let done = on_device(&provider, &node, &inputs, &like);
            let error = done.err().map_or_else(String::new, |error| error.to_string());
            assert!(error.contains("out of range"), "{name} {what}: \"{error}\"");
        };
    let case = Paged { sequences: &[(0, 3), (20, 1)], rotary: Some(false), slots: false, ..PLAIN };
    let (attributes, inputs) = (case.attributes(), case.inputs(ElementType::F32));
    let slots = Paged { slots: true, ..case }.inputs(ElementType::F32);
    let paged = |what: &str, inputs: &[Option<Value>], at: usize, wrong: Option<Value>| {
        refuse(what, "PagedAttention", &attributes, inputs, at, wrong);
    };
    for starts in [[0, 5, 4], [1, 3, 4], [0, 3, 3], [0, -1, 4], [0, 3, 9]] {
        paged("starts", &inputs, 5, i32s(&[3], &starts));
    }
    for pasts in [[0, -1], [0, 48], [0, i32::MAX], [-3, 20]] {
        paged("pasts", &inputs, 6, i32s(&[2], &pasts));
    }
    let blocks = case.sequences.len() as i32 * case.pages() as i32 * 2;
    paged("table", &inputs, 7, i32s(&[2, 3], &[1, 0, 0, 3, blocks, 0]));
    paged("table", &inputs, 7, i32s(&[2, 3], &[-1, 0, 0, 3, 5, 0]));
    paged("slots", &slots, 10, i32s(&[4], &[0, 1, 2, 16 * blocks]));
    paged("slots", &slots, 10, i32s(&[4], &[0, 1, 2, -2]));
    let case = Sparse {
        heads: [2, 1],
        size: 16,
        rows: 2,
        room: 40,
        lengths: [20, 9],
        total: 20,
        packed: false,
        rotary: None,
        layouts: 1,
        block: 16,
    };
    let (attributes, inputs) = (case.attributes(), case.inputs(ElementType::F32));
    for (at, wrong) in [
        (5, i32s(&[1, 4], &[0, -1, 2, 5])),
        (5, i32s(&[1, 4], &[0, 1, 90, 99])),
        (6, i32s(&[1, 6], &[77; 6])),
        (7, i32s(&[1], &[1])),
        (7, i32s(&[1], &[41])),
        (8, i32s(&[2], &[21, 9])),
        (8, i32s(&[2], &[1, 9])),
        (8, i32s(&[2], &[-4, 9])),
    ] {
        refuse("numbers", "SparseAttention", &attributes, &inputs, at, wrong);
    }
}
