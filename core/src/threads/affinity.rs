//! Which processors threads may use.

use std::fmt;

/// Processors are numbered below this.
const MOST: usize = 1024;

/// For each thread of a pool but the caller's the processors that it may use, from 0 on. Empty: those of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Affinities(Vec<Vec<usize>>);

impl Affinities {
    /// Threads are told apart by semicolons; each has numbers and ranges from 1 on, as ONNX Runtime counts. `None` for what
    /// is no such text.
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Affinities::default());
        }
        text.split(';').map(processors).collect::<Option<_>>().map(Affinities)
    }

    /// For how many threads there are some.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Lets the calling thread, a pool's thread of this number, use its processors alone. A system that refuses leaves it
    /// as it is.
    pub(super) fn apply(&self, thread: usize) {
        if let Some(processors) = self.0.get(thread) {
            pin(processors);
        }
    }
}

impl fmt::Display for Affinities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, processors) in self.0.iter().enumerate() {
            f.write_str(if i > 0 { ";" } else { "" })?;
            for (k, processor) in processors.iter().enumerate() {
                write!(f, "{}{}", if k > 0 { "," } else { "" }, processor + 1)?;
            }
        }
        Ok(())
    }
}

/// The processors of one thread.
fn processors(text: &str) -> Option<Vec<usize>> {
    let number = |text: &str| text.trim().parse::<usize>().ok().filter(|n| (1..=MOST).contains(n));
    let mut found = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if first > last {
            return None;
        }
        found.extend(first - 1..last);
    }
    Some(found)
}

#[cfg(target_os = "linux")]
fn pin(processors: &[usize]) {
    // SAFETY: the set is plain bits, for which zeros are valid; numbers below `MOST` lie in it; the call reads it and
    // changes the calling thread alone.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        processors.iter().for_each(|&processor| libc::CPU_SET(processor, &mut set));
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// Processors are counted through the groups that the system has them in, up to 64 in each. A thread runs in one group:
/// that of the first processor.
#[cfg(windows)]
fn pin(processors: &[usize]) {
    use windows_sys::Win32::System::SystemInformation::GROUP_AFFINITY;
    use windows_sys::Win32::System::Threading::{
        GetActiveProcessorCount, GetActiveProcessorGroupCount, GetCurrentThread, SetThreadGroupAffinity,
    };
    // SAFETY: a question about the system.
    let groups = 0..unsafe { GetActiveProcessorGroupCount() };
    // SAFETY: as above; a number of no group gives 0.
    let groups = groups.map(|group| unsafe { GetActiveProcessorCount(group) });
    if let Some((group, mask)) = group_of(processors, groups.map(|count| count as usize)) {
        let affinity = GROUP_AFFINITY { Mask: mask, Group: group, Reserved: [0; 3] };
        // SAFETY: the call reads the struct and changes the calling thread alone.
        unsafe { SetThreadGroupAffinity(GetCurrentThread(), &affinity, std::ptr::null_mut()) };
    }
}

/// Systems that have no such call, or none that is known: threads stay where the system has them.
#[cfg(not(any(target_os = "linux", windows)))]
fn pin(_processors: &[usize]) {}

/// The group that the first processor is in, and a bit for each processor that is in it, by how many processors each group
/// has. `None` where there is no such processor.
#[cfg(any(windows, test))]
fn group_of(processors: &[usize], groups: impl Iterator<Item = usize>) -> Option<(u16, usize)> {
    let first = *processors.first()?;
    let mut start = 0;
    for (group, count) in groups.enumerate() {
        if first < start + count {
            let inside = processors.iter().filter(|&&p| (start..start + count.min(64)).contains(&p));
            let mask = inside.fold(0, |mask, &p| mask | 1 << (p - start));
            return u16::try_from(group).ok().map(|group| (group, mask)).filter(|(_, mask)| *mask != 0);
        }
        start += count;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_what_they_stand_for() {
        for (text, wanted) in [
            ("", Some("")),
            ("1", Some("1")),
            ("1,2;3-5", Some("1,2;3,4,5")),
            (" 7 - 7 ;1", Some("7;1")),
            ("0", None),
            ("1;", None),
            ("3-1", None),
            ("a", None),
            ("1025", None),
            ("-1", None),
        ] {
            let parsed = Affinities::parse(text);
            assert_eq!(parsed.as_ref().map(ToString::to_string).as_deref(), wanted, "{text:?}");
            assert_eq!(parsed.as_ref().and_then(|a| Affinities::parse(&a.to_string())), parsed);
        }
    }

    #[test]
    fn processors_of_one_group() {
        for (processors, groups, wanted) in [
            (&[0, 2][..], &[4][..], Some((0, 0b101))),
            (&[3, 4], &[4, 4], Some((0, 0b1000))),
            (&[5, 4, 1], &[4, 4], Some((1, 0b11))),
            (&[63, 0], &[64, 64], Some((0, 1 << 63 | 1))),
            (&[64], &[64, 64], Some((1, 1))),
            (&[8], &[4, 4], None),
            (&[], &[4], None),
        ] {
            assert_eq!(group_of(processors, groups.iter().copied()), wanted, "{processors:?} of {groups:?}");
        }
    }
}
