//! What a wave does, for people: every instruction with what it writes, or the registers at one instruction.

use crate::isa::{Instruction, Source, text};

use super::fault::Fault;
use super::group::{Observer, Watch};
use super::launch::Dispatch;
use super::wave::{Wave, lanes_of};

/// What is to be shown of which kernels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Waves whose instructions are all shown.
    pub waves: Option<Waves>,
    pub stop: Option<Breakpoint>,
}

/// Waves of a kernel: all, those of one workgroup, or one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waves {
    kernel: String,
    group: Option<[u32; 3]>,
    wave: Option<usize>,
}

/// An instruction of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breakpoint {
    kernel: String,
    /// Bytes from the kernel's first instruction.
    offset: u64,
}

impl Waves {
    /// From `KERNEL`, `KERNEL:X,Y,Z` or `KERNEL:X,Y,Z:WAVE`.
    pub fn parse(text: &str) -> Option<Waves> {
        let mut parts = text.split(':');
        let kernel = parts.next().filter(|name| !name.is_empty())?.to_owned();
        let group = match parts.next() {
            Some(group) => {
                let axes: Vec<u32> = group.split(',').map(|axis| axis.parse().ok()).collect::<Option<_>>()?;
                Some(axes.try_into().ok()?)
            }
            None => None,
        };
        let wave = match parts.next() {
            Some(wave) => Some(wave.parse().ok()?),
            None => None,
        };
        parts.next().is_none().then_some(Waves { kernel, group, wave })
    }
}

impl Breakpoint {
    /// From `KERNEL@OFFSET`.
    pub fn parse(text: &str) -> Option<Breakpoint> {
        let (kernel, offset) = text.rsplit_once('@').filter(|(kernel, _)| !kernel.is_empty())?;
        let offset = u64::from_str_radix(offset.trim_start_matches("0x"), 16).ok()?;
        Some(Breakpoint { kernel: kernel.to_owned(), offset })
    }
}

impl Trace {
    /// Who shows it for a launch; `None` where there is nothing to show.
    pub fn watch<'a>(&'a self, dispatch: &Dispatch<'a>) -> Option<Box<dyn Watch + 'a>> {
        let waves = self.waves.as_ref().filter(|waves| waves.kernel == dispatch.kernel);
        let stop = self.stop.as_ref().filter(|stop| stop.kernel == dispatch.kernel);
        let begin = dispatch.entry - dispatch.program.base;
        let shown = Shown { target: dispatch.program.target, begin, waves, stop };
        (waves.is_some() || stop.is_some()).then(|| Box::new(shown) as Box<dyn Watch>)
    }
}

#[derive(Clone, Copy)]
struct Shown<'a> {
    target: crate::isa::Target,
    /// Of the kernel, in bytes from the beginning of the code.
    begin: u64,
    waves: Option<&'a Waves>,
    stop: Option<&'a Breakpoint>,
}

impl Watch for Shown<'_> {
    fn observer(&self) -> Box<dyn Observer + '_> {
        Box::new(Tracer { shown: *self, group: [0; 3] })
    }
}

struct Tracer<'a> {
    shown: Shown<'a>,
    group: [u32; 3],
}

impl Tracer<'_> {
    fn is_shown(&self, wave: &Wave) -> bool {
        self.shown.waves.is_some_and(|waves| {
            waves.group.is_none_or(|group| group == self.group) && waves.wave.is_none_or(|id| id == wave.id)
        })
    }
}

impl Observer for Tracer<'_> {
    fn begin(&mut self, group: [u32; 3], _: &[Wave]) -> Result<(), Box<Fault>> {
        self.group = group;
        Ok(())
    }

    fn before(&mut self, wave: &Wave, instruction: &Instruction) -> Result<(), Box<Fault>> {
        let offset = instruction.offset.wrapping_sub(self.shown.begin);
        if self.shown.stop.is_some_and(|stop| stop.offset == offset) {
            let place = format!("workgroup {:?} wave {} at +{offset:#x}", self.group, wave.id);
            eprintln!("{place}: {}\n{}", text(instruction, self.shown.target), registers(wave));
        }
        Ok(())
    }

    fn after(&mut self, wave: &Wave, instruction: &Instruction) -> Result<(), Box<Fault>> {
        if self.is_shown(wave) {
            let offset = instruction.offset.wrapping_sub(self.shown.begin);
            eprintln!(
                "{:?} wave {} exec {:x} +{offset:#06x} {:48} {}",
                self.group,
                wave.id,
                wave.exec(),
                text(instruction, self.shown.target),
                written(wave, instruction)
            );
        }
        Ok(())
    }
}

/// The registers that an instruction wrote: scalars, and what the first active lane has.
fn written(wave: &Wave, instruction: &Instruction) -> String {
    let second = instruction.second.iter().flat_map(|second| second.destinations);
    let mut parts = Vec::new();
    for operand in instruction.destinations.into_iter().chain(second) {
        for i in 0..operand.registers.max(1) {
            match operand.source {
                Source::Scalar(register) => {
                    let register = register + i;
                    parts.push(format!("s{register}={:x}", wave.scalar[usize::from(register) & 127]));
                }
                Source::Vector(register) => {
                    let register = usize::from(register) + usize::from(i);
                    let lane = lanes_of(wave.exec()).next().unwrap_or(0);
                    parts.push(format!("v{register}[{lane}]={:x}", wave.vector.get(register, lane)));
                }
                _ => {}
            }
        }
    }
    parts.join(" ")
}

/// How many vector registers are shown, and lanes of each.
const ROWS: usize = 32;
const LANES: usize = 8;

/// A wave's registers: all scalars, the first lanes of the first vector registers.
fn registers(wave: &Wave) -> String {
    let mut lines = vec![format!("scc {} exec {:x}", u8::from(wave.scc), wave.exec())];
    for (row, scalars) in wave.scalar.chunks(8).enumerate() {
        let values: Vec<String> = scalars.iter().map(|value| format!("{value:08x}")).collect();
        lines.push(format!("s{:<3} {}", 8 * row, values.join(" ")));
    }
    for register in 0..ROWS {
        let values: Vec<String> =
            wave.vector.row(register)[..LANES].iter().map(|value| format!("{value:08x}")).collect();
        lines.push(format!("v{register:<3} {}", values.join(" ")));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named() {
        let all = Waves { kernel: "k".to_owned(), group: None, wave: None };
        assert_eq!(Waves::parse("k"), Some(all.clone()));
        assert_eq!(Waves::parse("k:1,2,3"), Some(Waves { group: Some([1, 2, 3]), ..all.clone() }));
        assert_eq!(Waves::parse("k:1,2,3:4"), Some(Waves { group: Some([1, 2, 3]), wave: Some(4), ..all }));
        for wrong in ["", ":1,2,3", "k:1,2", "k:1,2,3:x", "k:1,2,3:4:5", "k:"] {
            assert_eq!(Waves::parse(wrong), None, "{wrong}");
        }
        let stop = Breakpoint { kernel: "k".to_owned(), offset: 0x1c };
        assert_eq!(Breakpoint::parse("k@1c"), Some(stop.clone()));
        assert_eq!(Breakpoint::parse("k@0x1c"), Some(stop));
        for wrong in ["k", "@1c", "k@", "k@x"] {
            assert_eq!(Breakpoint::parse(wrong), None, "{wrong}");
        }
    }
}
