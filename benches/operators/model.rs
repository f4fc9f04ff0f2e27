//! A row of the table as a session, through the C API.

use std::ffi::CString;
use std::ptr::{null, null_mut};

use rukh::capi::*;

use crate::protobuf::Message;
use crate::table::{Attribute, Input, Kind, Row, Values};

/// A session with its inputs.
pub struct Session {
    environment: *mut rukh_environment,
    session: *mut rukh_session,
    names: Vec<CString>,
    values: Vec<*mut rukh_value>,
    outputs: usize,
}

impl Session {
    pub fn open(row: &Row) -> Session {
        let outputs = outputs(row);
        let model = encode(row, outputs);
        let (mut environment, mut session) = (null_mut(), null_mut());
        // SAFETY: live locals, and a pointer with its length.
        unsafe {
            let made = rukh_environment_create(null(), &mut environment, null_mut());
            assert_eq!(made, RUKH_OK);
            let opened = rukh_session_create_from_memory(
                environment,
                model.as_ptr().cast(),
                model.len(),
                null(),
                &mut session,
                null_mut(),
            );
            assert_eq!(opened, RUKH_OK, "the model of {row} does not open");
        }
        let given = row.inputs.iter().enumerate().filter_map(|(i, input)| Some((i, input.as_ref()?)));
        let (names, values) = given
            .filter(|(_, input)| !input.constant)
            .map(|(i, input)| (CString::new(format!("x{i}")).unwrap_or_default(), value(input)))
            .unzip();
        Session { environment, session, names, values, outputs }
    }

    /// Runs once, into new outputs.
    pub fn run(&self) {
        self.outputs().into_iter().for_each(|output| {
            // SAFETY: a handle of this run, destroyed once.
            unsafe { rukh_value_destroy(output) }
        });
    }

    /// Bytes of inputs and outputs.
    pub fn bytes(&self) -> usize {
        let outputs = self.outputs();
        let size = |&value: &*mut rukh_value| {
            let (mut data, mut bytes) = (null(), 0);
            // SAFETY: a live handle, and live locals.
            assert_eq!(unsafe { rukh_value_data(value, &mut data, &mut bytes, null_mut()) }, RUKH_OK);
            bytes
        };
        let total = self.values.iter().map(size).sum::<usize>() + outputs.iter().map(size).sum::<usize>();
        // SAFETY: handles of this call, destroyed once.
        outputs.into_iter().for_each(|output| unsafe { rukh_value_destroy(output) });
        total
    }

    fn outputs(&self) -> Vec<*mut rukh_value> {
        let names: Vec<_> = self.names.iter().map(|name| name.as_ptr()).collect();
        let inputs: Vec<_> = self.values.iter().map(|value| value.cast_const()).collect();
        let mut results = vec![null_mut(); self.outputs];
        // SAFETY: live arrays with their lengths, of live handles.
        let status = unsafe {
            rukh_session_run(
                self.session,
                null(),
                names.as_ptr(),
                inputs.as_ptr(),
                inputs.len(),
                null(),
                results.len(),
                results.as_mut_ptr(),
                null_mut(),
            )
        };
        assert_eq!(status, RUKH_OK);
        results
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: handles that nothing else has, destroyed once.
        unsafe {
            self.values.iter().for_each(|&value| rukh_value_destroy(value));
            rukh_session_destroy(self.session);
            rukh_environment_destroy(self.environment);
        }
    }
}

/// How many outputs the node of a row has.
fn outputs(row: &Row) -> usize {
    let named = row.attributes.iter().find_map(|(name, value)| match value {
        Attribute::Int(n) if name == "num_outputs" => Some(*n as usize),
        _ => None,
    });
    named.unwrap_or(match row.operator.as_str() {
        "DynamicQuantizeLinear" => 3,
        "TopK" => 2,
        _ => 1,
    })
}

fn encode(row: &Row, outputs: usize) -> Vec<u8> {
    let (mut node, mut graph) = (Message::default(), Message::default());
    for (i, input) in row.inputs.iter().enumerate() {
        let name = if input.is_some() { format!("x{i}") } else { String::new() };
        node.bytes(1, name.as_bytes());
        match input {
            None => {}
            Some(input) if input.constant => graph.message(5, initializer(&name, input)),
            Some(input) => graph.message(11, declaration(&name, input)),
        }
    }
    node.bytes(4, row.operator.as_bytes());
    node.bytes(7, row.domain.as_bytes());
    row.attributes.iter().for_each(|(name, value)| node.message(5, attribute(name, value)));
    for i in 0..outputs {
        let name = format!("y{i}");
        node.bytes(2, name.as_bytes());
        let mut output = Message::default();
        output.bytes(1, name.as_bytes());
        graph.message(12, output);
    }
    graph.message(1, node);
    graph.bytes(2, b"graph");
    let mut opset = Message::default();
    opset.bytes(1, row.domain.as_bytes());
    opset.int(2, row.opset);
    let mut model = Message::default();
    model.int(1, 10);
    model.message(7, graph);
    model.message(8, opset);
    model.0
}

fn attribute(name: &str, value: &Attribute) -> Message {
    let mut proto = Message::default();
    proto.bytes(1, name.as_bytes());
    let kind = match value {
        Attribute::Int(n) => {
            proto.int(3, *n);
            2
        }
        Attribute::Float(x) => {
            proto.float(2, *x);
            1
        }
        Attribute::String(text) => {
            proto.bytes(4, text.as_bytes());
            3
        }
        Attribute::Floats(list) => {
            list.iter().for_each(|&x| proto.float(7, x));
            6
        }
        Attribute::Ints(list) => {
            list.iter().for_each(|&n| proto.int(8, n));
            7
        }
    };
    proto.int(20, kind);
    proto
}

fn initializer(name: &str, input: &Input) -> Message {
    let mut tensor = Message::default();
    input.shape.iter().for_each(|&n| tensor.int(1, n));
    tensor.int(2, input.kind.element as i64);
    tensor.bytes(8, name.as_bytes());
    tensor.bytes(9, &bytes(input));
    tensor
}

fn declaration(name: &str, input: &Input) -> Message {
    let mut shape = Message::default();
    for &n in &input.shape {
        let mut dimension = Message::default();
        dimension.int(1, n);
        shape.message(1, dimension);
    }
    let (mut tensor, mut ty, mut info) = (Message::default(), Message::default(), Message::default());
    tensor.int(1, input.kind.element as i64);
    tensor.message(2, shape);
    ty.message(1, tensor);
    info.bytes(1, name.as_bytes());
    info.message(2, ty);
    info
}

fn value(input: &Input) -> *mut rukh_value {
    let bytes = bytes(input);
    let mut value = null_mut();
    // SAFETY: live arrays with their lengths, and a live local.
    let status = unsafe {
        rukh_value_create_tensor_copy(
            input.kind.element,
            input.shape.as_ptr(),
            input.shape.len(),
            bytes.as_ptr().cast(),
            bytes.len(),
            &mut value,
            null_mut(),
        )
    };
    assert_eq!(status, RUKH_OK);
    value
}

/// The elements: those given, or a reproducible mix.
fn bytes(input: &Input) -> Vec<u8> {
    let count = input.shape.iter().product::<i64>() as usize;
    let mut state = 7u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut out = Vec::with_capacity(count * input.kind.bytes);
    for i in 0..count {
        let x = match &input.values {
            Values::Given(values) => values[i],
            Values::Below(n) => (random() % n) as f64,
            Values::Positive => (random() % 4096 + 1) as f64 / 4096.0,
            Values::Any if input.kind.element == BOOL => (random() % 2) as f64,
            Values::Any => (random() % 4096) as f64 / 1024.0 - 2.0,
        };
        push(&mut out, input.kind, x);
    }
    out
}

const BOOL: i32 = 9;

fn push(out: &mut Vec<u8>, kind: Kind, x: f64) {
    match kind.element {
        1 => out.extend((x as f32).to_le_bytes()),
        6 => out.extend((x as i32).to_le_bytes()),
        7 => out.extend((x as i64).to_le_bytes()),
        10 => out.extend(half::f16::from_f64(x).to_le_bytes()),
        3 => out.push(x as i8 as u8),
        _ => out.push(x as u8),
    }
}
