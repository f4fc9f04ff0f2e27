//! How operators run: one folder for each kind of device.

pub(crate) mod cpu;
