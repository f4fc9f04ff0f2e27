//! What handles stand for.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::thread::ThreadId;

use super::call::{Failure, Handle};
use super::capture::Capture;
use super::events::Event;
use super::external::{External, Mapping};
use super::graph::{Executable, Graph};
use super::modules::{Function, Module};
use super::streams::{LEGACY, PER_THREAD, Stream};

/// All objects of a process. A handle is never given twice, so one that was destroyed is told from a live one.
pub struct State {
    next_handle: Handle,
    pub streams: BTreeMap<Handle, Stream>,
    pub per_thread: HashMap<ThreadId, Handle>,
    pub events: BTreeMap<Handle, Event>,
    pub modules: BTreeMap<Handle, Module>,
    pub functions: BTreeMap<Handle, Arc<Function>>,
    pub graphs: BTreeMap<Handle, Graph>,
    /// In which graph a node is.
    pub graph_of_node: HashMap<Handle, Handle>,
    pub executables: BTreeMap<Handle, Executable>,
    pub captures: BTreeMap<u64, Capture>,
    pub externals: BTreeMap<Handle, External>,
    /// By the address that the device sees.
    pub mappings: BTreeMap<u64, Mapping>,
}

/// Not an address that a program can use: following a handle stops it.
const FIRST_HANDLE: Handle = 0x6d68_0000_0000_1000;
const HANDLE_STEP: Handle = 16;

impl State {
    pub fn new() -> State {
        State {
            next_handle: FIRST_HANDLE,
            streams: BTreeMap::from([(LEGACY, Stream::new(true, 0, 0))]),
            per_thread: HashMap::new(),
            events: BTreeMap::new(),
            modules: BTreeMap::new(),
            functions: BTreeMap::new(),
            graphs: BTreeMap::new(),
            graph_of_node: HashMap::new(),
            executables: BTreeMap::new(),
            captures: BTreeMap::new(),
            externals: BTreeMap::new(),
            mappings: BTreeMap::new(),
        }
    }

    pub fn new_handle(&mut self) -> Handle {
        self.next_handle += HANDLE_STEP;
        self.next_handle
    }

    /// Which stream a program means: null and 1 are the legacy stream, 2 the calling thread's own.
    pub fn stream(&mut self, handle: Handle) -> Result<Handle, Failure> {
        let key = match handle {
            0 | LEGACY => LEGACY,
            PER_THREAD => self.stream_of_thread(),
            other => other,
        };
        if self.streams.contains_key(&key) { Ok(key) } else { Err(Failure::handle("stream", handle)) }
    }

    /// A stream that [`State::stream`] found.
    pub fn stream_mut(&mut self, key: Handle) -> Result<&mut Stream, Failure> {
        self.streams.get_mut(&key).ok_or_else(|| Failure::handle("stream", key))
    }

    fn stream_of_thread(&mut self) -> Handle {
        let thread = std::thread::current().id();
        if let Some(&key) = self.per_thread.get(&thread) {
            return key;
        }
        let key = self.new_handle();
        self.streams.insert(key, Stream::new(true, 0, 0));
        self.per_thread.insert(thread, key);
        key
    }

    pub fn event_mut(&mut self, handle: Handle) -> Result<&mut Event, Failure> {
        self.events.get_mut(&handle).ok_or_else(|| Failure::handle("event", handle))
    }

    pub fn function(&self, handle: Handle) -> Result<Arc<Function>, Failure> {
        use super::errors::HipError;
        let found = self.functions.get(&handle).cloned();
        found.ok_or_else(|| {
            let text = format!("{handle:#x} is no function of a loaded module");
            Failure::new(HipError::INVALID_DEVICE_FUNCTION, text)
        })
    }

    pub fn graph_mut(&mut self, handle: Handle) -> Result<&mut Graph, Failure> {
        let text = || Failure::invalid(format!("{handle:#x} is no graph, or one that was destroyed"));
        self.graphs.get_mut(&handle).ok_or_else(text)
    }

    pub fn executable_mut(&mut self, handle: Handle) -> Result<&mut Executable, Failure> {
        let text =
            || Failure::invalid(format!("{handle:#x} is no executable graph, or one that was destroyed"));
        self.executables.get_mut(&handle).ok_or_else(text)
    }
}
