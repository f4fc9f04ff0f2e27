//! Initializers that came from memory, as one of the sources that an artifact was made of.

use std::collections::BTreeMap;

use crate::artifact::{SourceFile, digest};
use crate::tensor::{Buffer, Tensor};
use crate::threads::Pool;

/// The source that stands for all of them; `None` where there are none. Like a model from memory it has no name.
pub(super) fn given_source(initializers: &BTreeMap<&str, &Tensor>, pool: &Pool) -> Option<SourceFile> {
    if initializers.is_empty() {
        return None;
    }
    let (mut length, mut facts) = (0, Vec::new());
    for (name, tensor) in initializers {
        let elements = match tensor.strings() {
            // Lengths stand before the texts, so that no two lists are the same bytes.
            Some(texts) => {
                let prefixed = |text: &String| [&text.len().to_le_bytes(), text.as_bytes()].concat();
                let joined: Vec<u8> = texts.iter().flat_map(prefixed).collect();
                length += joined.len();
                digest(&joined, pool)
            }
            None => {
                let bytes = tensor.buffer().map_or(&[][..], Buffer::bytes);
                length += bytes.len();
                digest(bytes, pool)
            }
        };
        facts.extend(format!("{name:?} {} {:?} {elements:02x?}\n", tensor.ty(), tensor.shape()).bytes());
    }
    Some(SourceFile {
        path: String::new(),
        length: length as u64,
        digest: digest(&facts, pool).to_vec(),
        needed: false,
    })
}
