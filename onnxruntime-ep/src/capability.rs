//! Finds the parts of a graph that librukh runs, by opening them.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::compiled_models::CompiledModels;
use crate::elements;
use crate::error::{Code, Error, Result};
use crate::library::{Compilation, Environment, Session, SessionOptions, Value, compile};
use crate::ort::{Graph, TypeInfo};
use crate::part::{Encoded, Part};
use crate::partition::{Vertex, partition};
use crate::snapshot::{NodeRecord, Snapshot};

/// Constants above this are left out where only an answer is wanted.
const SMALL: usize = 1024;

/// Opens models for one device.
pub(crate) struct Opener<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) options: &'a SessionOptions,
    /// Where librukh keeps what it makes of the parts, and finds it again.
    pub(crate) compiled: &'a CompiledModels,
    /// Whether values that cross a part's border lie in a device's memory.
    pub(crate) on_device: bool,
    /// Whether ONNX Runtime gives a part what only bodies of its nodes use.
    pub(crate) gives_implicit_inputs: bool,
    /// Whether parts become nodes `EPContext`, which take fewer types of elements than other nodes.
    pub(crate) for_contexts: bool,
}

/// A part that librukh has opened.
pub(crate) struct Taken {
    pub(crate) part: Part,
    pub(crate) session: Session,
}

impl Opener<'_> {
    /// The parts of a graph that librukh runs, and why nodes were left out.
    pub(crate) fn find<'s>(&self, snapshot: &'s Snapshot<'_>) -> Result<(Vec<Taken>, Vec<String>)> {
        let mut reasons = Vec::new();
        let mut takeable: Vec<bool> = Vec::new();
        for node in &snapshot.nodes {
            takeable.push(!node.taken_by_another && node.unreadable.is_none());
            if let Some(reason) = node.unreadable.as_ref().filter(|_| !node.is_context) {
                reasons.push(format!("{}: {reason}", node.title()));
            }
        }
        // Parts that opened while others did not.
        let mut opened: HashMap<Vec<usize>, Session> = HashMap::new();
        loop {
            let vertex = |(node, takeable): (&'s NodeRecord, &bool)| Vertex {
                needs: &node.needs,
                makes: &node.proto.output,
                takeable: *takeable,
            };
            let parts = partition(&snapshot.nodes.iter().zip(&takeable).map(vertex).collect::<Vec<_>>());
            let parts: Vec<Part> = parts.iter().map(|nodes| Part::of(snapshot, nodes)).collect();
            let mut left_out: Vec<_> = parts.iter().flat_map(|part| self.border(snapshot, part)).collect();
            if left_out.is_empty() {
                for part in &parts {
                    if opened.contains_key(&part.nodes) {
                        continue;
                    }
                    match self.open_kept(snapshot, part) {
                        Ok(session) => drop(opened.insert(part.nodes.clone(), session)),
                        Err(error) if is_about_the_model(&error) => {
                            left_out.extend(self.culprits(snapshot, part, &error)?);
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
            if left_out.is_empty() {
                let taken = |part: Part| opened.remove(&part.nodes).map(|session| Taken { part, session });
                return Ok((parts.into_iter().filter_map(taken).collect(), reasons));
            }
            for (node, reason) in left_out {
                if std::mem::replace(&mut takeable[node], false) {
                    reasons.push(format!("{}: {reason}", snapshot.nodes[node].title()));
                }
            }
        }
    }

    /// Whether librukh runs the only node of a snapshot.
    pub(crate) fn runs(&self, snapshot: &Snapshot<'_>) -> Result<bool> {
        let node = &snapshot.nodes[0];
        if node.taken_by_another || node.unreadable.is_some() {
            return Ok(false);
        }
        let part = Part::of(snapshot, &[0]);
        if !self.border(snapshot, &part).is_empty() {
            return Ok(false);
        }
        match self.open(snapshot, &part, SMALL) {
            Ok(_) => Ok(true),
            Err(error) if is_about_the_model(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A session of a part, whose constants of more than `most` bytes are inputs.
    pub(crate) fn open(&self, snapshot: &Snapshot<'_>, part: &Part, most: usize) -> Result<Session> {
        let encoded = part.encode(snapshot, most)?;
        let options = self.options_for(&encoded)?;
        Session::open(self.environment, encoded.model, &options)
    }

    /// A session of a part, which may have been compiled before.
    fn open_kept(&self, snapshot: &Snapshot<'_>, part: &Part) -> Result<Session> {
        let encoded = part.encode(snapshot, usize::MAX)?;
        let mut options = self.options_for(&encoded)?;
        self.compiled.set(&mut options, part.word(snapshot).as_deref())?;
        Session::open(self.environment, encoded.model, &options)
    }

    /// Compiles a part to a file.
    pub(crate) fn compile(
        &self,
        snapshot: &Snapshot<'_>,
        part: &Part,
        wanted: Compilation<'_>,
        file: &Path,
    ) -> Result<()> {
        let encoded = part.encode(snapshot, usize::MAX)?;
        let options = self.options_for(&encoded)?;
        compile(self.environment, &encoded.model, &options, wanted, file)
    }

    fn options_for(&self, encoded: &Encoded<'_>) -> Result<SessionOptions> {
        let mut options = self.options.copy()?;
        // No other session is given this memory. librukh would keep it for one, beside what it made of the weights.
        options.set("share_weights", "0")?;
        for tensor in &encoded.weights {
            let bytes = tensor.raw_data.as_deref().unwrap_or_default();
            options.add_initializer(&tensor.name, &Value::copied(tensor.data_type, &tensor.dims, bytes)?)?;
        }
        Ok(options)
    }

    /// Nodes that cannot be in a part because of the type of a value that crosses its border.
    fn border(&self, snapshot: &Snapshot<'_>, part: &Part) -> Vec<(usize, String)> {
        let bad = |names: &[String]| -> HashSet<String> {
            let crosses = |name: &&String| self.crosses(snapshot.types.get(*name));
            names.iter().filter(|name| !crosses(name)).cloned().collect()
        };
        let (mut inputs, outputs) = (bad(&part.inputs), bad(&part.outputs));
        if !self.gives_implicit_inputs {
            let given =
                |name: &&String| part.nodes.iter().any(|it| snapshot.nodes[*it].proto.input.contains(name));
            inputs.extend(part.inputs.iter().filter(|name| !given(name)).cloned());
        }
        let mut culprits = Vec::new();
        for &index in &part.nodes {
            let node = &snapshot.nodes[index];
            let value = node.needs.iter().find(|name| inputs.contains(*name));
            let value = value.or_else(|| node.proto.output.iter().find(|name| outputs.contains(*name)));
            if let Some(value) = value {
                let with = match self.for_contexts {
                    true => "a node EPContext",
                    false => "this version of ONNX Runtime",
                };
                culprits.push((index, format!("its value \"{value}\" cannot be exchanged with {with}")));
            }
        }
        culprits
    }

    /// Whether a value of a type can cross the border of a part.
    fn crosses(&self, ty: Option<&TypeInfo>) -> bool {
        match ty {
            Some(TypeInfo::Tensor(element, _)) => {
                elements::onnx_of(*element).is_some()
                    && !(self.on_device && *element == elements::STRING)
                    && (!self.for_contexts || elements::is_for_contexts(*element))
            }
            _ => false,
        }
    }

    /// The nodes of a part that librukh cannot run, one at least.
    fn culprits(&self, snapshot: &Snapshot<'_>, part: &Part, error: &Error) -> Result<Vec<(usize, String)>> {
        let mut culprits = Vec::new();
        for &node in &part.nodes {
            let alone = Part::of(snapshot, &[node]);
            match self.open(snapshot, &alone, SMALL) {
                Ok(_) => {}
                Err(error) if is_about_the_model(&error) => culprits.push((node, error.message)),
                Err(error) => return Err(error),
            }
        }
        if culprits.is_empty() {
            // Each node can be run, and all together cannot.
            culprits.extend(part.nodes.iter().map(|node| (*node, error.message.clone())));
        }
        Ok(culprits)
    }
}

/// Whether an error says that librukh cannot run a model, and not that something is wrong with the machine.
fn is_about_the_model(error: &Error) -> bool {
    matches!(error.code, Code::InvalidGraph | Code::NotImplemented | Code::RuntimeException)
}

/// Whether a graph is the body of a node that librukh takes as a whole, so that nothing in it needs a part of its own. Where
/// ONNX Runtime has trouble with parts in bodies (it gives those of two bodies the same name), there is none in any.
pub(crate) fn is_within_a_part(opener: &Opener<'_>, graph: &Graph<'_>) -> Result<bool> {
    let Some(parent) = graph.parent()? else {
        return Ok(false);
    };
    // Other nodes with bodies are functions of the standard's. ONNX Runtime writes them out later, and then refuses a graph
    // with parts in such a body.
    let control_flow = ["If", "Loop", "Scan"].contains(&parent.operator()?.as_str());
    if !opener.gives_implicit_inputs || !control_flow {
        return Ok(true);
    }
    opener.runs(&Snapshot::of_node(&parent, graph)?)
}
