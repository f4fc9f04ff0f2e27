//! What an operand is: how many registers, and how its constants are written.

/// One operand of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    #[default]
    None,
    /// `i16`, `f16`, `bf16`: a part of a register. `b16` is one that is written.
    Integer16,
    Float16,
    Bfloat16,
    Bits16,
    /// `v2f16`, `v2f32`: two numbers.
    Pair16,
    Pair32,
    /// `f32`, `f64`: its sign can be changed by modifiers.
    Float32,
    Float64,
    /// `b32`, `b64` and so on: registers, whatever they hold.
    Registers(u8),
    /// `t8`, `t4`, `t2`: a tile of a matrix that all lanes share, so many registers in waves of 32 lanes and half as many
    /// in waves of 64.
    Tile(u8),
    /// `s32`: a scalar register, in the place of a vector register.
    Scalar,
    /// `m`: a bit for each lane.
    Mask,
    /// `a`: an address in LDS.
    Address,
    /// `d`: the destination, which is read before it is written.
    Destination,
    /// `k32`: a literal that the instruction always has.
    Literal,
    /// `i`, `k`: an immediate of 8 or 16 bits.
    Immediate,
}

const WORDS: &[(&str, Kind)] = &[
    ("i16", Kind::Integer16),
    ("f16", Kind::Float16),
    ("bf16", Kind::Bfloat16),
    ("b16", Kind::Bits16),
    ("v2f16", Kind::Pair16),
    ("v2f32", Kind::Pair32),
    ("f32", Kind::Float32),
    ("f64", Kind::Float64),
    ("b32", Kind::Registers(1)),
    ("b64", Kind::Registers(2)),
    ("b96", Kind::Registers(3)),
    ("b128", Kind::Registers(4)),
    ("b256", Kind::Registers(8)),
    ("b512", Kind::Registers(16)),
    ("b1024", Kind::Registers(32)),
    ("t8", Kind::Tile(8)),
    ("t4", Kind::Tile(4)),
    ("t2", Kind::Tile(2)),
    ("s32", Kind::Scalar),
    ("m", Kind::Mask),
    ("a", Kind::Address),
    ("d", Kind::Destination),
    ("k32", Kind::Literal),
    ("i", Kind::Immediate),
    ("k", Kind::Immediate),
];

impl Kind {
    /// `None` for an unknown word.
    pub fn parse(word: &str) -> Option<Kind> {
        WORDS.iter().find(|(known, _)| *known == word).map(|(_, kind)| *kind)
    }

    /// Registers of 32 bits.
    pub fn registers(self, wave32: bool) -> u8 {
        match self {
            Kind::None | Kind::Destination | Kind::Immediate => 0,
            Kind::Float64 | Kind::Pair32 => 2,
            Kind::Registers(count) => count,
            Kind::Tile(count) if wave32 => count,
            Kind::Tile(count) => count / 2,
            Kind::Mask if !wave32 => 2,
            _ => 1,
        }
    }

    /// Whether a source is half a register.
    pub fn is_half(self) -> bool {
        matches!(self, Kind::Integer16 | Kind::Float16 | Kind::Bfloat16 | Kind::Bits16)
    }

    /// Whether a source can be negated.
    pub fn is_float(self) -> bool {
        matches!(self, Kind::Float16 | Kind::Bfloat16 | Kind::Float32 | Kind::Float64)
    }
}

/// The operands of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operands {
    pub destinations: [Kind; 2],
    pub sources: [Kind; 4],
}

impl Operands {
    /// Unknown words and words that are too many are left out; a test holds the tables to this.
    pub fn parse(text: &str) -> Operands {
        let (destinations, sources) = text.split_once('=').unwrap_or(("", text));
        let mut operands = Operands::default();
        fill(&mut operands.destinations, destinations);
        fill(&mut operands.sources, sources);
        operands
    }

    pub fn source_count(&self) -> usize {
        self.sources.iter().filter(|kind| **kind != Kind::None).count()
    }
}

fn fill(kinds: &mut [Kind], words: &str) {
    for (kind, word) in kinds.iter_mut().zip(words.split_whitespace()) {
        *kind = Kind::parse(word).unwrap_or_default();
    }
}
