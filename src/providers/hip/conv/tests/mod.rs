//! Convolutions on a device against the CPU's, by layout.

mod nchw;
mod nhwc;
