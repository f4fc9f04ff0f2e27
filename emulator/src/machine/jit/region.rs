//! Blocks of a program that jump to each other, translated together.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem::offset_of;
use std::sync::atomic::{AtomicUsize, Ordering};

use iced_x86::{Code, Register};

use crate::isa::{Generation, sgpr};
use crate::machine::program::{Block, Program, WORD};
use crate::machine::step::Setting;
use crate::machine::wave::{State, Wave};

use super::assembler::{Label, at};
use super::call::{Call, Context, Function, emit_call};
use super::emitter::{Emitter, scalar_memory};
use super::enter::leave;
use super::inline::finish_range_finder;
use super::pages::Pages;
use super::step::{Branch, Step, Steps, writes_exec};

/// What is not translated at once: code of this length takes long enough.
const MOST_INSTRUCTIONS: usize = 8000;

const PC: usize = offset_of!(Wave, pc);
const STATE: usize = offset_of!(Wave, state);
const RESUME: usize = offset_of!(Wave, resume);
const EXECUTED: usize = offset_of!(Wave, executed);
const LIMIT: usize = offset_of!(Context, limit);

/// Translated blocks, and what their code needs.
pub struct Region {
    _pages: Pages,
    _pool: Box<[u32]>,
    #[expect(clippy::vec_box, reason = "the code has their addresses")]
    _calls: Vec<Box<Call>>,
    /// Where the code of a block is, by the first byte of its instructions.
    pub entries: Vec<(u64, usize)>,
}

/// Translates the block at `begin` and those that follow it and were executed before.
pub fn translate(
    program: &Program,
    begin: u64,
    lanes: usize,
    table: &[AtomicUsize],
) -> Result<Region, String> {
    let blocks = reachable(program, begin, lanes, table);
    let setting = Setting { target: program.target, lanes, base: program.base };
    let indexed = program.target.generation <= Generation::Gfx940
        && blocks.values().flat_map(|it| &it.instructions).any(|it| it.name.starts_with("s_set_gpr_idx"));
    let mut builder = Builder::new(setting, indexed, table);
    for &begin in blocks.keys() {
        let label = builder.emitter.assembler.label();
        builder.labels.insert(begin, label);
    }
    builder.backward = blocks
        .iter()
        .flat_map(|(&begin, block)| successors(block).into_iter().filter(move |&to| to <= begin))
        .collect();
    for (&begin, block) in &blocks {
        builder.block(begin, block);
    }
    builder.finish()
}

/// Blocks that were executed and are not translated, from one on.
fn reachable<'a>(
    program: &'a Program,
    begin: u64,
    lanes: usize,
    table: &[AtomicUsize],
) -> BTreeMap<u64, &'a Block> {
    let (mut found, mut next, mut instructions) = (BTreeMap::new(), vec![begin], 0);
    while let Some(begin) = next.pop() {
        let translated = table.get((begin / WORD) as usize).map(|it| it.load(Ordering::Acquire));
        if found.contains_key(&begin) || translated != Some(0) {
            continue;
        }
        let Some(block) = program.known_block(begin, lanes) else { continue };
        instructions += block.instructions.len();
        if instructions > MOST_INSTRUCTIONS && !found.is_empty() {
            break;
        }
        found.insert(begin, block);
        next.extend(successors(block));
    }
    found
}

/// Where a wave may go on behind a block, as far as that is known.
fn successors(block: &Block) -> Vec<u64> {
    let Some(last) = block.instructions.last() else { return Vec::new() };
    match Branch::of(last) {
        Some(Branch::Always(to)) => vec![to],
        Some(Branch::If(_, to)) => vec![to, block.end],
        Some(Branch::End) => Vec::new(),
        _ => vec![block.end],
    }
}

struct Builder<'a> {
    emitter: Emitter,
    setting: Setting,
    /// Whether V_MOV_B32 may use other registers than it says.
    indexed: bool,
    table: &'a [AtomicUsize],
    labels: HashMap<u64, Label>,
    /// Blocks that are jumped back to.
    backward: BTreeSet<u64>,
    /// Where the code leaves.
    exit: Label,
    #[expect(clippy::vec_box, reason = "the code has their addresses")]
    calls: Vec<Box<Call>>,
}

impl<'a> Builder<'a> {
    fn new(setting: Setting, indexed: bool, table: &'a [AtomicUsize]) -> Builder<'a> {
        let mut emitter = Emitter::new(setting.lanes);
        let exit = emitter.assembler.label();
        let (labels, backward, calls) = (HashMap::new(), BTreeSet::new(), Vec::new());
        Builder { emitter, setting, indexed, table, labels, backward, exit, calls }
    }

    fn block(&mut self, begin: u64, block: &Block) {
        let steps = Steps::new(block, self.setting, self.indexed);
        self.emitter.assembler.bind(self.labels[&begin]);
        let assembler = &mut self.emitter.assembler;
        assembler.memory_immediate(
            Code::Add_rm64_imm32,
            at(Register::RBX, EXECUTED),
            block.instructions.len() as i32,
        );
        if self.backward.contains(&begin) {
            let go_on = assembler.label();
            self.compare_executed();
            self.emitter.assembler.jump(Code::Jbe_rel32_64, go_on);
            self.leave_at(begin);
            self.emitter.assembler.bind(go_on);
        }
        // Code for all lanes, and code for any.
        let guarded = steps.uses_lanes(0);
        let masked = self.emitter.assembler.label();
        let turns: Vec<(Label, Label)> =
            steps.iter().map(|_| (self.emitter.assembler.label(), self.emitter.assembler.label())).collect();
        if guarded {
            self.jump_unless_full(masked);
            self.body(begin, block, &steps, false, &turns);
        }
        self.emitter.assembler.bind(masked);
        self.body(begin, block, &steps, true, &turns);
    }

    /// The code of a block for all lanes, or for any. `turns`: where each of both goes on behind an instruction that wrote
    /// EXEC.
    fn body(&mut self, begin: u64, block: &Block, steps: &Steps, masked: bool, turns: &[(Label, Label)]) {
        self.emitter.masked = masked;
        self.emitter.begin();
        let mut served = 0;
        for (index, step) in steps.iter().enumerate() {
            if index < served {
                continue;
            }
            served = if masked { steps.loads_lds_until(index) } else { index };
            if step.ends() {
                self.terminator(begin, block, index, step);
                return;
            }
            if !self.step(begin, block, index, step, served) {
                continue;
            }
            self.emitter.forget_masks();
            if !steps.uses_lanes(index + 1) {
                continue;
            }
            let (full, any) = turns[index];
            if masked {
                self.jump_if_full(full);
                self.emitter.assembler.bind(any);
            } else {
                self.jump_unless_full(any);
                self.emitter.assembler.bind(full);
            }
            self.emitter.begin();
        }
        self.go_to(block.end);
    }

    /// Code for one instruction, or where it loads from LDS for all until `end`; whether EXEC may be another one now.
    fn step(&mut self, begin: u64, block: &Block, index: usize, step: &Step, end: usize) -> bool {
        let instruction = &block.instructions[index];
        match step {
            Step::Nothing => false,
            Step::Vector(planned) => super::vector::emit(&mut self.emitter, planned),
            Step::Other | Step::Access | Step::LoadLds => {
                if !super::scalar::emit(&mut self.emitter, instruction) && !self.access(begin, block, index) {
                    self.call(begin, block, index, end);
                }
                writes_exec(instruction)
            }
            Step::Ends(_) => false,
        }
    }

    /// Code for an instruction that loads or stores without a call, which it makes where its elements lie otherwise than
    /// usual; whether there is any.
    fn access(&mut self, begin: u64, block: &Block, index: usize) -> bool {
        let lanes = self.setting.lanes;
        let Some((_, access)) = super::memory::find(&block.instructions[index], lanes) else { return false };
        let Some(otherwise) = super::inline::emit(&mut self.emitter, &access) else { return false };
        let Some((function, call)) = self.called(begin, block, index, index) else { return false };
        let (go_on, exit, held) = (self.emitter.assembler.label(), self.exit, self.emitter.held());
        self.emitter.assembler.bind(go_on);
        self.emitter.aside(otherwise, move |e| {
            emit_call(&mut e.assembler, function, call, exit);
            e.hold(&held);
            e.assembler.jump(Code::Jmp_rel32_64, go_on);
        });
        true
    }

    /// A call for an instruction, and for those until `end` that are served by the same function.
    fn call(&mut self, begin: u64, block: &Block, index: usize, end: usize) {
        let Some((function, call)) = self.called(begin, block, index, end) else { return };
        emit_call(&mut self.emitter.assembler, function, call, self.exit);
        self.emitter.forget();
    }

    /// What is called, and with what.
    fn called(
        &mut self,
        begin: u64,
        block: &Block,
        index: usize,
        end: usize,
    ) -> Option<(Function, *const Call)> {
        let make = |step: usize| {
            let action = block.actions[step].as_ref()?;
            let found = super::memory::find(&block.instructions[step], self.setting.lanes);
            let (function, access) = found.unwrap_or((super::call::perform, Default::default()));
            Some((function, Call { action, block: begin, step, access, others: Vec::new() }))
        };
        let (function, mut call) = make(index)?;
        call.others = (index + 1..end).filter_map(make).map(|(_, call)| call).collect();
        let call = Box::new(call);
        let address = &raw const *call;
        self.calls.push(call);
        Some((function, address))
    }

    fn terminator(&mut self, begin: u64, block: &Block, index: usize, step: &Step) {
        let Step::Ends(branch) = step else { return };
        match *branch {
            Branch::Always(to) => self.go_to(to),
            Branch::If(condition, to) => {
                let code = condition.test(&mut self.emitter);
                match self.labels.get(&to) {
                    Some(&label) => self.emitter.assembler.jump(code, label),
                    None => {
                        let taken = self.emitter.assembler.label();
                        self.emitter.assembler.jump(code, taken);
                        self.go_to(block.end);
                        self.emitter.assembler.bind(taken);
                        return self.go_to(to);
                    }
                }
                self.go_to(block.end);
            }
            Branch::End => self.leave_in(State::Ended, block.end),
            Branch::Barrier => {
                self.save_resume(block.end);
                self.leave_in(State::AtBarrier, block.end);
            }
            Branch::Unknown => {
                self.set_pc(block.end);
                self.call(begin, block, index, index);
                self.emitter.assembler.jump(Code::Jmp_rel32_64, self.exit);
            }
        }
    }

    /// Goes on at another block: here, in another region, or where one is interpreted.
    fn go_to(&mut self, to: u64) {
        if let Some(&label) = self.labels.get(&to) {
            return self.emitter.assembler.jump(Code::Jmp_rel32_64, label);
        }
        self.set_pc(to);
        if let Some(place) = self.place(to) {
            // Loops may go through several regions.
            self.compare_executed();
            let assembler = &mut self.emitter.assembler;
            assembler.jump(Code::Ja_rel32_64, self.exit);
            assembler.constant(Register::RAX, place);
            assembler.load(Code::Mov_r64_rm64, Register::RAX, at(Register::RAX, 0));
            assembler.two(Code::Test_rm64_r64, Register::RAX, Register::RAX);
            assembler.jump(Code::Je_rel32_64, self.exit);
            assembler.one(Code::Jmp_rm64, Register::RAX);
        } else {
            self.emitter.assembler.jump(Code::Jmp_rel32_64, self.exit);
        }
    }

    /// Where the address of a block's code is, or will be, if code may jump there.
    fn place(&self, block: u64) -> Option<u64> {
        let place = self.table.get((block / WORD) as usize)?;
        let may_jump = block.is_multiple_of(WORD) && !self.indexed;
        may_jump.then(|| (&raw const *place).expose_provenance() as u64)
    }

    /// The wave knows where it goes on behind a barrier.
    fn save_resume(&mut self, to: u64) {
        let Some(place) = self.place(to) else { return };
        let assembler = &mut self.emitter.assembler;
        assembler.constant(Register::RAX, place);
        assembler.load(Code::Mov_r64_rm64, Register::RAX, at(Register::RAX, 0));
        assembler.store(Code::Mov_rm64_r64, at(Register::RBX, RESUME), Register::RAX);
    }

    /// The flags say whether the wave executed more instructions than it may.
    fn compare_executed(&mut self) {
        let assembler = &mut self.emitter.assembler;
        assembler.load(Code::Mov_r64_rm64, Register::RAX, at(Register::RBX, EXECUTED));
        assembler.load(Code::Cmp_r64_rm64, Register::RAX, at(Register::R13, LIMIT));
    }

    fn set_pc(&mut self, pc: u64) {
        self.emitter.assembler.memory_immediate(Code::Mov_rm64_imm32, at(Register::RBX, PC), pc as i32);
    }

    fn leave_at(&mut self, pc: u64) {
        self.set_pc(pc);
        self.emitter.assembler.jump(Code::Jmp_rel32_64, self.exit);
    }

    fn leave_in(&mut self, state: State, pc: u64) {
        self.emitter.assembler.memory_immediate(
            Code::Mov_rm8_imm8,
            at(Register::RBX, STATE),
            i32::from(state as u8),
        );
        self.leave_at(pc);
    }

    fn compare_exec(&mut self) {
        let code = if self.setting.lanes == 64 { Code::Cmp_rm64_imm8 } else { Code::Cmp_rm32_imm8 };
        self.emitter.assembler.memory_immediate(code, scalar_memory(sgpr::EXEC), -1);
    }

    fn jump_unless_full(&mut self, to: Label) {
        self.compare_exec();
        self.emitter.assembler.jump(Code::Jne_rel32_64, to);
    }

    fn jump_if_full(&mut self, to: Label) {
        self.compare_exec();
        self.emitter.assembler.jump(Code::Je_rel32_64, to);
    }

    fn finish(mut self) -> Result<Region, String> {
        let assembler = &mut self.emitter.assembler;
        assembler.bind(self.exit);
        leave(assembler);
        self.emitter.finish_asides();
        finish_range_finder(&mut self.emitter);
        let (assembler, pool) = self.emitter.into_pool();
        let (code, labels) = assembler.finish()?;
        let pages = Pages::new(&code).ok_or("the system gives no pages for code")?;
        let entries = self
            .labels
            .iter()
            .filter_map(|(&begin, label)| Some((begin, pages.address(label.place(&labels)?))))
            .collect();
        Ok(Region { _pages: pages, _pool: pool, _calls: self.calls, entries })
    }
}
