//! Values as files hold them: NumPy arrays and archives, ONNX protobuf messages, raw bytes; and as the command line does.

mod compare;
mod element;
mod files;
mod generate;
mod literal;
mod npy;
mod npz;
mod port;
mod protobuf;
mod value;

pub use compare::{Comparison, Scale, Tolerance, compare};
pub use element::ElementType;
pub use files::{read_expected, read_input, save};
pub use generate::generate;
pub use literal::parse_literal;
pub use npy::{read_npy, write_npy};
pub use npz::{read_npz, write_npz};
pub use port::{Dim, Port};
pub use protobuf::{Kind, read_protobuf};
pub use value::{Data, Tensor, Value};
