//! Packages whose code is generic, behind functions that are not: the compiler makes the machine code of generic
//! functions in the crate that calls them, so that the library would compile the Fourier transforms and image readers of
//! others again with every change of its own.

pub mod fft;
pub mod images;
