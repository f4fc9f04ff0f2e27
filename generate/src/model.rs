//! A model in memory: its session, its tokenizer and its chat template. Generators share it.

use rukh_client::{Element, Environment, Placement, Port, Session, SessionOptions};

use crate::error::{Result, fail};
use crate::folder::Folder;
use crate::options::Options;
use crate::text::{Template, Tokenizer};

pub(crate) struct Model {
    pub(crate) folder: Folder,
    pub(crate) environment: Environment,
    pub(crate) session: Session,
    pub(crate) tokenizer: Option<Tokenizer>,
    pub(crate) template: Option<Template>,
    /// The inputs by what they are for.
    pub(crate) ids: Port,
    pub(crate) mask: Option<Port>,
    pub(crate) positions: Option<Port>,
    pub(crate) logits: Port,
    pub(crate) caches: Vec<Cache>,
    pub(crate) cache_element: Element,
    /// Elements of a row of a cache.
    pub(crate) cache_columns: usize,
    /// Whether every layer's attention may write its keys behind those that its buffer has.
    pub(crate) shareable: bool,
    /// The device whose memory caches belong in; `None` for the host's.
    pub(crate) device: Option<usize>,
}

/// A cache of keys or of values of one layer.
#[derive(Clone)]
pub(crate) struct Cache {
    pub(crate) past: String,
    pub(crate) present: String,
}

impl Model {
    pub(crate) fn open(environment: Environment, folder: Folder, options: &Options) -> Result<Model> {
        let tokenizer = Tokenizer::read(&folder)?;
        let template = Template::read(&folder)?;
        let file = folder.path.join(&folder.model.decoder.filename);
        let session = Session::open(&environment, &file, &session_options(options)?)?;
        let decoder = &folder.model.decoder;
        let ids = input(&session, &decoder.inputs.input_ids)?.clone();
        integers(&ids)?;
        let optional = |name: &str| {
            let port = session.inputs.iter().find(|port| port.name == name).cloned();
            port.map(|port| integers(&port).map(|()| port)).transpose()
        };
        let mask = optional(&decoder.inputs.attention_mask)?;
        let positions = optional(&decoder.inputs.position_ids)?;
        let logits = output(&session, &decoder.outputs.logits)?.clone();
        check_logits(&folder, &logits)?;
        let caches = caches(&folder, &session)?;
        check_inputs(&session, [Some(&ids), mask.as_ref(), positions.as_ref()], &caches)?;
        let first = input(&session, &caches[0].past)?;
        let cache = first.element.and_then(|element| Some((element, columns(element, decoder.head_size)?)));
        let Some((cache_element, cache_columns)) = cache else {
            fail!(
                Unsupported,
                "input {}: caches of this type are not supported; f32, f16, bf16, int8, float8e4m3fn, and uint8 for two \
                 numbers of 4 bits are",
                first.name
            );
        };
        let placement = session.placement()?;
        let attention: Vec<&Placement> =
            placement.iter().filter(|node| node.operator.contains("GroupQueryAttention")).collect();
        let shareable = attention.len() == decoder.num_hidden_layers && mask.is_some();
        let on_device = shareable && attention.iter().all(|node| node.provider != "cpu");
        let number = options.provider_options.iter().find(|(key, _)| key == "device_id");
        let number = number.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
        let device = on_device.then_some(number);
        Ok(Model {
            tokenizer,
            template,
            ids,
            mask,
            positions,
            logits,
            caches,
            cache_element,
            cache_columns,
            shareable,
            device,
            environment,
            session,
            folder,
        })
    }

    pub(crate) fn tokenizer(&self) -> Result<&Tokenizer> {
        match &self.tokenizer {
            Some(tokenizer) => Ok(tokenizer),
            None => fail!(
                Unsupported,
                "{} has no tokenizer.json, so that tokens can be given and taken, and no text",
                self.folder.path.display()
            ),
        }
    }
}

fn session_options(options: &Options) -> Result<SessionOptions> {
    let mut session = SessionOptions::new()?;
    for (key, value) in &options.session_options {
        session.set(key, value)?;
    }
    if !options.provider.is_empty() {
        session.add_provider(&options.provider, &options.provider_options)?;
    } else if let Some((key, _)) = options.provider_options.first() {
        fail!(InvalidArgument, "option \"provider.{key}\": it needs option \"provider\", such as hip or cpu");
    }
    Ok(session)
}

fn input<'a>(session: &'a Session, name: &str) -> Result<&'a Port> {
    find(&session.inputs, "input", name)
}

fn output<'a>(session: &'a Session, name: &str) -> Result<&'a Port> {
    find(&session.outputs, "output", name)
}

fn find<'a>(ports: &'a [Port], kind: &str, name: &str) -> Result<&'a Port> {
    match ports.iter().find(|port| port.name == name) {
        Some(port) => Ok(port),
        None => {
            let names: Vec<&str> = ports.iter().map(|port| &*port.name).collect();
            fail!(
                InvalidModel,
                "genai_config.json names the {kind} \"{name}\", which the model does not have; it has {}",
                names.join(", ")
            )
        }
    }
}

fn integers(port: &Port) -> Result<()> {
    if !matches!(port.element, Some(Element::I64 | Element::I32)) {
        fail!(Unsupported, "input {}: it must have elements of int64 or int32", port.name);
    }
    Ok(())
}

/// Whether caches and scores may be of this type.
/// Elements that a cache needs for a row of a head, or `None` for a type that no cache has.
fn columns(element: Element, head_size: usize) -> Option<usize> {
    match element {
        Element::U8 => Some(head_size / 2),
        Element::I8 | Element::F8E4M3Fn => Some(head_size),
        other => is_float(&other).then_some(head_size),
    }
}

fn is_float(element: &Element) -> bool {
    matches!(element, Element::F32 | Element::F16 | Element::Bf16)
}

/// The scores must be of the vocabulary that the folder has.
fn check_logits(folder: &Folder, logits: &Port) -> Result<()> {
    if !logits.element.as_ref().is_some_and(is_float) {
        fail!(
            Unsupported,
            "output {}: scores of this type are not supported; f32, f16 and bf16 are",
            logits.name
        );
    }
    let columns = logits.dims().last().copied().unwrap_or(-1);
    if columns >= 0 && columns != folder.model.vocab_size as i64 {
        fail!(
            InvalidModel,
            "output {}: the model scores {columns} tokens, and genai_config.json (model.vocab_size) has {}",
            logits.name,
            folder.model.vocab_size
        );
    }
    Ok(())
}

fn caches(folder: &Folder, session: &Session) -> Result<Vec<Cache>> {
    let decoder = &folder.model.decoder;
    let mut found = Vec::new();
    for layer in 0..decoder.num_hidden_layers {
        for (past, present) in [
            (&decoder.inputs.past_key_names, &decoder.outputs.present_key_names),
            (&decoder.inputs.past_value_names, &decoder.outputs.present_value_names),
        ] {
            let [past, present] = [past, present].map(|name| name.replace("%d", &layer.to_string()));
            let port = input(session, &past)?;
            let shape = port.dims();
            output(session, &present)?;
            let row = port.element.and_then(|element| columns(element, decoder.head_size));
            let row = row.unwrap_or(decoder.head_size);
            let wanted = [(1, decoder.num_key_value_heads), (3, row)];
            for (axis, size) in wanted {
                let given = shape.get(axis).copied().unwrap_or(-1);
                if shape.len() != 4 || (given >= 0 && given != size as i64) {
                    fail!(
                        InvalidModel,
                        "input {past}: its shape {shape:?} does not fit genai_config.json, by which it is [batch, {}, length, {row}]",
                        decoder.num_key_value_heads
                    );
                }
            }
            found.push(Cache { past, present });
        }
    }
    Ok(found)
}

/// An input that nobody fills would fail at the first token only.
fn check_inputs(session: &Session, known: [Option<&Port>; 3], caches: &[Cache]) -> Result<()> {
    for port in &session.inputs {
        let is_known = known.iter().flatten().any(|known| known.name == port.name)
            || caches.iter().any(|cache| cache.past == port.name);
        if !is_known {
            fail!(
                Unsupported,
                "the model has an input \"{}\", which generating text does not know; known are tokens, attention mask, positions, and caches of keys and values",
                port.name
            );
        }
    }
    Ok(())
}
