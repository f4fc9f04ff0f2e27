//! The graph of a program as bytes of an artifact, and back.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;

use crate::error::{Result, fail};
use crate::graph::{Dim, Graph};

use super::outside::{Keeper, Weights};
use super::{Given, Metadata, Model, Source, write};

/// The graph, whose outputs have the shapes that the model `declared`. The elements of its tensors go where `keeper` says.
pub(crate) fn encode_program(
    graph: &Graph,
    metadata: &Metadata,
    declared: &[Option<Vec<Dim>>],
    keeper: &mut dyn Keeper,
) -> Result<Vec<u8>> {
    let proto = write::program(graph, metadata, declared, &mut Weights::Kept(keeper))?;
    let size = proto.encoded_len();
    if size >= 2 << 30 {
        fail!(
            Unsupported,
            "the program takes {size} bytes without its weights; a protobuf message has less than 2 GiB"
        );
    }
    Ok(proto.encode_to_vec())
}

/// The program; `files` are the bytes of the locations that its tensors name.
pub(crate) fn decode_program(bytes: &Bytes, files: BTreeMap<String, Bytes>) -> Result<Model> {
    let given = Given { files, program: true, ..Given::default() };
    super::open(Source::Kept(bytes), true, &given)
}
