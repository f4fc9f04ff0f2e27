//! One allocation and what is said about it.

/// Where memory came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `hipMalloc` and its like.
    Device,
    /// The host's memory that `hipHostMalloc` gave.
    Host,
    /// The program's own memory, by `hipHostRegister`.
    Registered,
    /// `hipMallocManaged`.
    Managed,
    /// The segments of a loaded code object.
    Code,
    /// Arguments and packet of the running launch.
    Launch,
}

/// Whether memory can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Live,
    Freed,
    /// It has an address, and memory later: what a captured `hipMallocAsync` gives.
    Reserved,
}

/// An allocation. `start` and `size` are those that the program asked for.
#[derive(Clone, Debug)]
pub struct Allocation {
    pub start: u64,
    pub size: u64,
    pub kind: Kind,
    pub state: State,
    /// Those of `hipHostMalloc` or `hipHostRegister`.
    pub flags: u32,
    /// Whether its address stays its own when it is freed.
    pub of_graph: bool,
    /// Where `start` lies in the host's memory.
    pub host: u64,
}

impl Kind {
    pub fn text(self) -> &'static str {
        match self {
            Kind::Device => "device memory",
            Kind::Host => "host memory of hipHostMalloc",
            Kind::Registered => "registered host memory",
            Kind::Managed => "managed memory",
            Kind::Code => "a loaded code object",
            Kind::Launch => "the arguments of a launch",
        }
    }
}

impl Allocation {
    /// The end of a sentence about an address in memory that cannot be used.
    pub(super) fn why_not_live(&self, address: u64) -> String {
        let what = match self.state {
            State::Reserved => "in memory of a graph that is not allocated now",
            _ => "in an allocation that was freed",
        };
        format!("{what}: byte {} of {} at {:#x}", address - self.start, self.size, self.start)
    }

    /// For an address that should be an allocation's first.
    pub(super) fn interior(&self) -> String {
        format!(", it lies inside that of {} bytes at {:#x}", self.size, self.start)
    }
}
