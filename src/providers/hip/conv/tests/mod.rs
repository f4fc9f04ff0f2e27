//! Convolutions on a device against the CPU's, by layout.

mod excite;
mod nchw;
mod nhwc;
