//! The tables, the decoder and the text of instructions against LLVM's disassembler.

mod bytes;
mod encode;
mod llvm;
mod random;
mod tables;
