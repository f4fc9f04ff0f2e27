//! What opening a model did with bytes.

/// What opening a model took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoadCounters {
    /// Bytes of files that are mapped.
    pub(crate) mapped_bytes: u64,
    /// Bytes of files that were read in, or copied from the caller.
    pub(crate) read_bytes: u64,
    /// Bytes of weights that were copied to align or to unpack them, and how many weights.
    pub(crate) copied_bytes: u64,
    pub(crate) copied_weights: u64,
    /// Bytes of weights that kernels packed into a layout of their own.
    pub(crate) packed_bytes: u64,
    /// Bytes of all these kinds that another session had already, and that both use.
    pub(crate) shared_bytes: u64,
}

impl LoadCounters {
    /// What opening took where another session, whose counters these are, had opened the model before.
    pub(crate) fn of_sharing(self) -> Self {
        let LoadCounters { mapped_bytes, read_bytes, copied_bytes, packed_bytes, .. } = self;
        let shared_bytes = mapped_bytes + read_bytes + copied_bytes + packed_bytes;
        LoadCounters { shared_bytes, ..LoadCounters::default() }
    }
}
