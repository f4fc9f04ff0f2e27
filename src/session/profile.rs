//! What ran when, as a Chrome trace: the threads of the host, and a lane of its own for work on a device.

use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Collects events of all runs of a session. Times are from the session's opening, in nanoseconds.
pub(super) struct Recorder {
    start: Instant,
    events: Mutex<Vec<Event>>,
}

struct Event {
    name: String,
    /// The operator; empty for a whole run or for loading.
    op: String,
    category: &'static str,
    provider: &'static str,
    /// The system's thread, or `DEVICE_LANE`.
    lane: u64,
    start_ns: u64,
    duration_ns: u64,
    /// Given to the device.
    launches: Option<usize>,
}

/// The lane of work on a device; no thread has this number.
const DEVICE_LANE: u64 = 1 << 40;

/// When something took place, in nanoseconds since the recorder began.
pub(super) struct Span<'a> {
    pub(super) name: &'a str,
    pub(super) op: &'a str,
    pub(super) start_ns: u64,
    pub(super) duration_ns: u64,
}

impl Recorder {
    pub(super) fn new() -> Self {
        Recorder { start: Instant::now(), events: Mutex::default() }
    }

    /// The time now, to be given to `step` or `span`.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// A node ran on the CPU since `start`.
    pub(super) fn step(&self, node: &str, op: &str, start: u64) {
        self.add("node", "cpu", thread_number(), self.since(node, op, start), None);
    }

    /// The host gave a node's work to the device since `start`.
    pub(super) fn launch(&self, node: &str, op: &str, start: u64, launches: usize) {
        self.add("launch", "hip", thread_number(), self.since(node, op, start), Some(launches));
    }

    /// A node ran on the device.
    pub(super) fn device(&self, span: Span<'_>) {
        self.add("node", "hip", DEVICE_LANE, span, None);
    }

    /// Something else took place since `start`.
    pub(super) fn span(&self, name: &str, start: u64) {
        self.add("session", "cpu", thread_number(), self.since(name, "", start), None);
    }

    fn since<'a>(&self, name: &'a str, op: &'a str, start_ns: u64) -> Span<'a> {
        Span { name, op, start_ns, duration_ns: self.now().saturating_sub(start_ns) }
    }

    fn add(
        &self,
        category: &'static str,
        provider: &'static str,
        lane: u64,
        span: Span<'_>,
        launches: Option<usize>,
    ) {
        let Span { name, op, start_ns, duration_ns } = span;
        let (name, op) = (name.to_owned(), op.to_owned());
        let event = Event { name, op, category, provider, lane, start_ns, duration_ns, launches };
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    /// The trace so far, in the JSON array format of Chrome's trace viewer (and Perfetto); times in
    /// microseconds.
    pub(super) fn json(&self) -> String {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::from("[");
        for (i, e) in events.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let launches = e.launches.map_or_else(String::new, |n| format!(",\"launches\":{n}"));
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "{comma}\n{{\"ph\":\"X\",\"cat\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{:.3},\"dur\":{:.3},\"name\":{},\"args\":{{\"op\":{},\"provider\":\"{}\"{launches}}}}}",
                e.category,
                std::process::id(),
                e.lane,
                e.start_ns as f64 / 1e3,
                e.duration_ns as f64 / 1e3,
                quote(&e.name),
                quote(&e.op),
                e.provider
            );
        }
        if events.iter().any(|e| e.lane == DEVICE_LANE) {
            let _ = write!(
                text,
                ",\n{{\"ph\":\"M\",\"pid\":{},\"tid\":{DEVICE_LANE},\"name\":\"thread_name\",\"args\":{{\"name\":\"GPU\"}}}}",
                std::process::id()
            );
        }
        text.push_str("\n]\n");
        text
    }
}

/// A number for the calling thread; the system's thread id.
#[cfg(windows)]
fn thread_number() -> u64 {
    // SAFETY: has no arguments and cannot fail.
    unsafe { windows_sys::Win32::System::Threading::GetCurrentThreadId() }.into()
}

/// A number for the calling thread; the system's thread id.
#[cfg(not(windows))]
fn thread_number() -> u64 {
    // SAFETY: gettid has no arguments and cannot fail.
    let id = unsafe { libc::syscall(libc::SYS_gettid) };
    u64::try_from(id).unwrap_or(0)
}

/// A JSON string.
pub(super) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            c if (c as u32) < 0x20 => {
                let _ = write!(quoted, "\\u{:04x}", c as u32);
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trace_is_json_with_escaped_names() {
        let recorder = Recorder::new();
        let start = recorder.now();
        recorder.step("a\"b\\c\n", "Conv", start);
        recorder.span("run", start);
        let json = recorder.json();
        assert!(json.starts_with('[') && json.trim_end().ends_with(']'));
        assert!(json.contains(r#""name":"a\"b\\c\u000a","args":{"op":"Conv""#), "{json}");
        assert_eq!(json.matches("\"ph\":\"X\"").count(), 2);
        assert!(!json.contains("GPU"));
        recorder.device(Span { name: "d", op: "Relu", start_ns: 1000, duration_ns: 2500 });
        let json = recorder.json();
        assert!(
            json.contains(r#""ts":1.000,"dur":2.500,"name":"d","args":{"op":"Relu","provider":"hip"}"#),
            "{json}"
        );
        assert!(json.contains(r#""args":{"name":"GPU"}"#), "{json}");
    }
}
