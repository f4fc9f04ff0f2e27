//! Environment variables. All begin with `AMDEMU_`.

use std::ffi::{CStr, c_void};

use crate::isa::Target;
use crate::machine;
use crate::machine::check::Checks;
use crate::machine::trace::{Breakpoint, Trace, Waves};
use crate::memory;

use super::failures::FailAt;

/// What the environment says.
#[derive(Clone, Debug)]
pub struct Options {
    pub target: Target,
    pub devices: i32,
    /// Empty: made from the target.
    pub name: String,
    /// 0: a usual number for the target.
    pub compute_units: i32,
    pub hip_major: i32,
    pub defer: bool,
    pub no_graphs: bool,
    pub api_trace: bool,
    pub leaks: bool,
    pub statistics: bool,
    pub fail_at: Vec<FailAt>,
    pub checks: Checks,
    pub trace: Trace,
    pub memory: memory::Settings,
    pub machine: machine::Settings,
    /// Where counters of launches go; empty: nowhere.
    pub count: String,
    /// One of so many workgroups is counted; 0: about 256 of a launch.
    pub count_every: u64,
}

/// A variable: its name behind the prefix, its default, what is allowed, what it does, and how it is read.
struct Row {
    name: &'static str,
    default: &'static str,
    allowed: &'static str,
    meaning: &'static str,
    read: fn(&mut Options, &str) -> Option<()>,
}

const PREFIX: &str = "AMDEMU_";

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row { name: "ARCH", default: "gfx1100", allowed: "a target such as gfx90a or gfx1201",
          meaning: "the GPU that is emulated", read: |o, v| { o.target = Target::find(v)?; Some(()) } },
    Row { name: "DEVICES", default: "1", allowed: "0 to 64",
          meaning: "how many of them there are", read: |o, v| { o.devices = number(v, 0, 64)?; Some(()) } },
    Row { name: "NAME", default: "", allowed: "any text",
          meaning: "the device's name", read: |o, v| { o.name = v.to_owned(); Some(()) } },
    Row { name: "CUS", default: "0", allowed: "0 to 1024",
          meaning: "compute units, 0: as many as usual", read: |o, v| { o.compute_units = number(v, 0, 1024)?; Some(()) } },
    Row { name: "VRAM_MB", default: "24576", allowed: "1 to 1048576",
          meaning: "memory; allocations fail past it", read: |o, v| { o.memory.limit = number::<u64>(v, 1, 1 << 20)? << 20; Some(()) } },
    Row { name: "HIP_MAJOR", default: "the number behind libamdhip64.so., else 6", allowed: "5, 6 or 7",
          meaning: "which HIP's numbers are used", read: |o, v| { o.hip_major = number(v, 5, 7)?; Some(()) } },
    Row { name: "DEFER", default: "0", allowed: "0 or 1",
          meaning: "streams keep their work until a synchronisation; graphs run the newest node first",
          read: |o, v| { o.defer = switch(v)?; Some(()) } },
    Row { name: "NO_GRAPHS", default: "0", allowed: "0 or 1",
          meaning: "stream capture and graphs are not supported", read: |o, v| { o.no_graphs = switch(v)?; Some(()) } },
    Row { name: "POISON", default: "1", allowed: "0 or 1",
          meaning: "new memory is filled with 0xff", read: |o, v| { o.memory.poison = switch(v)?; Some(()) } },
    Row { name: "API_TRACE", default: "0", allowed: "0 or 1",
          meaning: "every call is written to stderr", read: |o, v| { o.api_trace = switch(v)?; Some(()) } },
    Row { name: "LEAKS", default: "0", allowed: "0 or 1",
          meaning: "what was never destroyed is listed at the end, which is then status 86",
          read: |o, v| { o.leaks = switch(v)?; Some(()) } },
    Row { name: "FAIL", default: "", allowed: "alloc:N,copy:N,launch:N,event:N,stream:N,module:N",
          meaning: "the N-th call of a kind fails", read: |o, v| { o.fail_at = FailAt::parse(v)?; Some(()) } },
    Row { name: "STATS", default: "0", allowed: "0 or 1",
          meaning: "counts and times of kernels at the end", read: |o, v| { o.statistics = switch(v)?; Some(()) } },
    Row { name: "COUNT", default: "", allowed: "a file, or - for stderr",
          meaning: "counters of each launch, a line of JSON", read: |o, v| { o.count = v.to_owned(); Some(()) } },
    Row { name: "COUNT_EVERY", default: "0", allowed: "a number",
          meaning: "one of so many workgroups is counted, 0: about 256 of a launch",
          read: |o, v| { o.count_every = number(v, 0, u64::MAX)?; Some(()) } },
    Row { name: "THREADS", default: "0", allowed: "0 to 1024",
          meaning: "host threads that run workgroups, 0: all processors",
          read: |o, v| { o.machine.threads = number(v, 0, 1024)?; Some(()) } },
    Row { name: "TRANSLATE", default: "100", allowed: "0 to 4294967295",
          meaning: "blocks of instructions that were interpreted so often become machine code of the host, 0: none does",
          read: |o, v| { o.machine.translate = number(v, 0, u32::MAX)?; Some(()) } },
    Row { name: "MAX_INSTS", default: "4000000000", allowed: "a number above 0",
          meaning: "instructions of a wave before it is stopped",
          read: |o, v| { o.machine.most_instructions = number(v, 1, u64::MAX)?; Some(()) } },
    Row { name: "SHUFFLE", default: "0", allowed: "a number",
          meaning: "a seed for a random order of waves, 0: one after the other",
          read: |o, v| { o.machine.shuffle = number(v, 0, u64::MAX)?; Some(()) } },
    Row { name: "CHECK", default: "", allowed: "all, or a list of races,waits,barriers,uninitialized,alignment",
          meaning: "mistakes that kernels are watched for", read: |o, v| { o.set_checks(Checks::parse(v)?); Some(()) } },
    Row { name: "TRACE", default: "", allowed: "KERNEL, or KERNEL:X,Y,Z for a workgroup, or KERNEL:X,Y,Z:WAVE",
          meaning: "instructions of a kernel and what they write go to stderr",
          read: |o, v| { o.trace.waves = Some(Waves::parse(v)?); Some(()) } },
    Row { name: "BREAK", default: "", allowed: "KERNEL@OFFSET, bytes in hexadecimal from the kernel's first instruction",
          meaning: "registers are written to stderr when a wave arrives there",
          read: |o, v| { o.trace.stop = Some(Breakpoint::parse(v)?); Some(()) } },
];

impl Default for Options {
    fn default() -> Options {
        Options {
            target: Target::find("gfx1100")
                .unwrap_or_else(|| unreachable!("gfx1100 is in the table of targets")),
            devices: 1,
            name: String::new(),
            compute_units: 0,
            hip_major: 6,
            defer: false,
            no_graphs: false,
            api_trace: false,
            leaks: false,
            statistics: false,
            fail_at: Vec::new(),
            checks: Checks::default(),
            trace: Trace::default(),
            memory: memory::Settings::default(),
            machine: machine::Settings::default(),
            count: String::new(),
            count_every: 0,
        }
    }
}

impl Options {
    /// The options, and a sentence about each variable that is not understood.
    pub fn from_environment() -> (Options, Vec<String>) {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.to_str()?.strip_prefix(PREFIX)?.to_owned();
            Some((name, value.to_string_lossy().into_owned()))
        });
        let mut variables: Vec<(String, String)> = variables.collect();
        variables.sort();
        let hip_major =
            file_name().and_then(|name| number(name.rsplit_once(".so.")?.1.split('.').next()?, 5, 7));
        Options::parse(&variables, hip_major)
    }

    pub fn set_checks(&mut self, checks: Checks) {
        self.checks = checks;
        self.memory.track_undefined = checks.track_undefined();
    }

    /// From names without their prefix, and values. An empty value is none.
    pub fn parse(variables: &[(String, String)], hip_major: Option<i32>) -> (Options, Vec<String>) {
        let mut options = Options { hip_major: hip_major.unwrap_or(6), ..Options::default() };
        let mut complaints = Vec::new();
        for (name, value) in variables.iter().filter(|(_, value)| !value.is_empty()) {
            let Some(row) = ROWS.iter().find(|row| row.name == name) else {
                let known: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
                complaints.push(format!("{PREFIX}{name} is unknown; there are {}", known.join(", ")));
                continue;
            };
            if (row.read)(&mut options, value).is_none() {
                complaints.push(format!(
                    "{PREFIX}{name}={value} is not understood ({}): {}; the default is {}",
                    row.meaning,
                    row.allowed,
                    if row.default.is_empty() { "none" } else { row.default }
                ));
            }
        }
        (options, complaints)
    }
}

fn number<T: std::str::FromStr + PartialOrd>(text: &str, least: T, most: T) -> Option<T> {
    text.parse().ok().filter(|value| (least..=most).contains(value))
}

fn switch(text: &str) -> Option<bool> {
    number(text, 0, 1).map(|value: u8| value == 1)
}

/// The name that the program opened this library by.
pub fn file_name() -> Option<String> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr fills the structure when it gives a number other than 0; zeros are valid values of its fields.
    let info = unsafe {
        let found = libc::dladdr(file_name as *const c_void, info.as_mut_ptr());
        if found == 0 {
            return None;
        }
        info.assume_init()
    };
    if info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's own copy of the name, which stays as long as the library is loaded.
    Some(unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned())
}
