//! One instruction after decoding, in the same form for all generations.

/// The encodings, by the names of the ISA manuals. Those of flat addresses are split by their segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    Sop1,
    Sop2,
    Sopk,
    Sopc,
    Sopp,
    Smem,
    Vop1,
    Vop2,
    Vopc,
    Vop3,
    Vop3p,
    /// Two operations at once; the other half is [`Instruction::second`].
    Vopd,
    Ds,
    Flat,
    Global,
    Scratch,
    Buffer,
}

/// One decoded instruction.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// The mnemonic without a suffix for its encoding, by GFX11's and GFX12's assembler: `ds_load_b32` also where GFX9
    /// says `ds_read_b32`, `v_add_nc_u32` also where GFX9 says `v_add_u32`.
    pub name: &'static str,
    pub encoding: Encoding,
    /// Bytes from the beginning of the code.
    pub offset: u64,
    /// In bytes, literals included.
    pub size: u8,
    /// What is written: the result, and a mask of lanes (carry) where there is one. Of comparisons the first is the mask,
    /// or EXEC.
    pub destinations: [Operand; 2],
    /// What is read, in the order of the manual's names:
    ///
    /// * vector and scalar operations: S0, S1, S2. A carry in or the mask of a select stands in the place where the
    ///   long encoding has it, VCC written out. A destination that is read as well (`v_fmac`) is repeated as the last.
    /// * DS: address, first data, second data.
    /// * flat, global, scratch: address, data, scalar address.
    /// * buffer: address, resource, scalar offset, data of stores and atomics.
    /// * scalar memory: base, scalar offset.
    pub sources: [Operand; 4],
    pub modifiers: Modifiers,
    /// The other half of a VOPD instruction.
    pub second: Option<Box<Instruction>>,
}

impl Instruction {
    /// What stands for bytes that are no instruction.
    pub fn unknown(offset: u64) -> Instruction {
        Instruction {
            name: "unknown",
            encoding: Encoding::Sopp,
            offset,
            size: 4,
            destinations: Default::default(),
            sources: Default::default(),
            modifiers: Modifiers::default(),
            second: None,
        }
    }
}

/// An operand and how much of it is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Operand {
    pub source: Source,
    /// Registers, of 32 bits each.
    pub registers: u8,
}

/// Where a value comes from or goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Source {
    /// There is none (also `off` of addresses).
    #[default]
    None,
    /// A vector register; accumulation registers begin at 256.
    Vector(u16),
    /// A scalar register, by the numbers of [`sgpr`] for all generations.
    Scalar(u8),
    /// An inline constant, which an instruction reads in its own type.
    Integer(i32),
    /// An inline constant: 0.5, 1, 2, 4, their negatives, 1/2π (as 0.15915494309189532).
    Float(f64),
    /// A literal of 32 bits behind the instruction.
    Literal(u32),
    Special(Special),
}

/// Numbers of the scalar registers that have names. Below 106 they are general.
pub mod sgpr {
    /// GFX9: two registers. Later ones have none to read.
    pub const FLAT_SCRATCH: u8 = 102;
    pub const VCC: u8 = 106;
    pub const TTMP: u8 = 108;
    /// Always here, though GFX11 and GFX12 exchange it with the next.
    pub const M0: u8 = 124;
    /// Reads 0; what is written is lost.
    pub const NULL: u8 = 125;
    pub const EXEC: u8 = 126;
}

/// What can be read only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    SharedBase,
    SharedLimit,
    PrivateBase,
    PrivateLimit,
    VccIsZero,
    ExecIsZero,
    Scc,
}

/// What changes an instruction's operands or result.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Modifiers {
    /// Sources to negate, and whose absolute value to take: a bit for each. Of VOP3P: the low halves to negate, and the
    /// high halves.
    pub negate: u8,
    pub absolute: u8,
    pub negate_high: u8,
    /// Which half a source of 16 bits is in: a bit for each; bit 3 for the destination. Of VOP3P: which half serves the
    /// low half of the result, and the high half.
    pub op_sel: u8,
    pub op_sel_high: u8,
    pub clamp: bool,
    /// 0: none, 1: times 2, 2: times 4, 3: half.
    pub omod: u8,
    pub dpp: Option<Dpp>,
    pub sdwa: Option<Sdwa>,
    pub memory: Memory,
    /// The immediate of SOPP and SOPK, with its sign.
    pub immediate: i32,
    /// Of MFMA.
    pub cbsz: u8,
    pub abid: u8,
    pub blgp: u8,
}

/// Lanes exchange their first source before it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dpp {
    /// `control` as encoded (DPP_CTRL).
    Dpp16 { control: u16, row_mask: u8, bank_mask: u8, bound_control: bool, fetch_inactive: bool },
    /// The lane of each group of eight that each of them reads.
    Dpp8 { lanes: [u8; 8], fetch_inactive: bool },
}

/// GFX9 and GFX10: parts of registers. Selectors as encoded: 0 to 3 a byte, 4 and 5 a word, 6 all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sdwa {
    pub destination: u8,
    /// What becomes of the rest of the destination: 0 zeros, 1 the sign, 2 it stays.
    pub unused: u8,
    pub sources: [u8; 2],
    /// Whether the part is extended by its sign.
    pub signed: [bool; 2],
}

/// Fields of memory instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// In bytes; of DS instructions with two addresses in elements (`offset`, `offset1`).
    pub offset: i32,
    pub offset1: u8,
    /// The atomic returns the value before.
    pub returns: bool,
    pub offen: bool,
    pub idxen: bool,
    /// Loads go to LDS.
    pub lds: bool,
    pub gds: bool,
    /// Buffers: one more register tells whether memory was there.
    pub tfe: bool,
    /// Cache policy as encoded (GLC, SLC, DLC; SC0, NT, SC1; TH and SCOPE), for the text.
    pub policy: u8,
}
