//! `abi/rukh-api.json`: the C API for who makes bindings, in other languages too. docs/abi.md says what is in it.

use serde_json::{Map, Value, json};

use crate::api::{Api, Function, Kind, Parameter};

/// The description as text.
pub fn json(api: &Api) -> String {
    let version = api.constants.iter().find(|constant| constant.name == "RUKH_ABI_VERSION").unwrap();
    let enums = api.enums.iter().map(|named| {
        let values = api.constants.iter().filter(|constant| constant.ty == named.name);
        let values = values
            .map(|constant| json!({"name": constant.name, "value": constant.value, "doc": constant.doc}));
        json!({"name": named.name, "doc": named.doc, "values": values.collect::<Vec<_>>()})
    });
    let handles = api.handles.iter().map(|named| json!({"name": named.name, "doc": named.doc}));
    let description = json!({
        "abi_version": version.value,
        "enums": enums.collect::<Vec<_>>(),
        "handles": handles.collect::<Vec<_>>(),
        "callbacks": api.callbacks.iter().map(|function| described(api, function)).collect::<Vec<_>>(),
        "functions": api.functions.iter().map(|function| described(api, function)).collect::<Vec<_>>(),
    });
    serde_json::to_string_pretty(&description).unwrap() + "\n"
}

fn described(api: &Api, function: &Function) -> Value {
    let parameters = (0..function.parameters.len()).map(|index| parameter(api, function, index));
    let mut out = Map::new();
    out.insert("name".to_owned(), json!(function.name));
    out.insert("doc".to_owned(), json!(function.doc));
    out.insert("since".to_owned(), json!(function.since));
    if let Some(note) = &function.deprecated {
        out.insert("deprecated".to_owned(), json!(note));
    }
    out.insert("returns".to_owned(), json!(function.returns.as_ref().map(c_type)));
    out.insert("parameters".to_owned(), json!(parameters.collect::<Vec<_>>()));
    Value::Object(out)
}

fn parameter(api: &Api, function: &Function, index: usize) -> Value {
    let parameter = &function.parameters[index];
    let mut out = Map::new();
    out.insert("name".to_owned(), json!(parameter.name));
    out.insert("type".to_owned(), json!(c_type(&parameter.kind)));
    out.insert("base".to_owned(), json!(c_base(&parameter.kind.base)));
    out.insert("pointers".to_owned(), json!(parameter.kind.pointers.len()));
    let role = Role::of(api, function, index);
    out.insert("direction".to_owned(), json!(role.direction()));
    if is_address(api, &parameter.kind) {
        out.insert("nullable".to_owned(), json!(role.may_be_null(function, parameter)));
    }
    if let Some(ownership) = role.ownership(function, parameter) {
        out.insert("ownership".to_owned(), json!(ownership));
    }
    if let Role::Array(length) | Role::Buffer(length) = role {
        out.insert("length".to_owned(), json!(function.parameters[length].name));
    }
    Value::Object(out)
}

/// What a parameter is for.
#[derive(Clone, Copy)]
enum Role {
    /// A number, a text, a handle or an address that the function reads or uses.
    In,
    /// A handle or an object that the function changes.
    Changed,
    /// Receives one thing.
    Out,
    /// Elements that the function reads; the parameter at the index says how many.
    Array(usize),
    /// Memory of the caller that the function fills; the parameter at the index says how large it is.
    Buffer(usize),
    /// A pointer that the library only passes on to callbacks.
    User,
}

impl Role {
    fn of(api: &Api, function: &Function, index: usize) -> Role {
        let Parameter { name, kind } = &function.parameters[index];
        let is_handle = api.handles.iter().any(|handle| handle.name == kind.base);
        let length = (index + 1..function.parameters.len()).find(|&at| {
            let next = &function.parameters[at];
            next.kind.pointers.is_empty() && next.kind.base == "usize"
        });
        match kind.pointers.last() {
            None => Role::In,
            Some(_) if kind.base == "c_void" && name == "user" => Role::User,
            Some(true) if kind.pointers.len() == 1 && (is_handle || kind.base == "c_char") => Role::In,
            Some(true) => length.map_or(Role::In, Role::Array),
            Some(false) if kind.pointers.len() == 1 && is_handle => Role::Changed,
            Some(false) if kind.pointers.len() == 1 && kind.base.starts_with("DLManaged") => Role::In,
            Some(false) => match length {
                Some(length) if ["cap", "output_count"].contains(&&*function.parameters[length].name) => {
                    Role::Buffer(length)
                }
                _ if kind.base == "c_void" && kind.pointers.len() == 1 => Role::In,
                _ => Role::Out,
            },
        }
    }

    fn direction(self) -> &'static str {
        match self {
            Role::In | Role::Array(_) | Role::User => "in",
            Role::Changed => "inout",
            Role::Out | Role::Buffer(_) => "out",
        }
    }

    /// What the top of the header says of all functions, and else what the function's comment says.
    fn may_be_null(self, function: &Function, parameter: &Parameter) -> bool {
        match self {
            Role::Array(_) | Role::Buffer(_) | Role::User => true,
            _ if function.name.ends_with("_destroy") || ["error", "needed"].contains(&&*parameter.name) => {
                true
            }
            _ => says_null(&function.doc, &parameter.name),
        }
    }

    /// Who owns what a pointer to a pointer receives, and whether a function takes what it is given.
    fn ownership(self, function: &Function, parameter: &Parameter) -> Option<&'static str> {
        match (self, &parameter.kind.pointers[..]) {
            (Role::Out | Role::Buffer(_), [true, _]) => Some("borrowed"),
            (Role::Out | Role::Buffer(_), [false, _]) if parameter.kind.base == "c_void" => Some("borrowed"),
            (Role::Out | Role::Buffer(_), [false, _]) => {
                let statements = statements(&function.doc, &parameter.name);
                Some(if statements.iter().any(|statement| statement.contains("borrowed")) {
                    "borrowed"
                } else {
                    "caller"
                })
            }
            (Role::Changed, _) if function.name.ends_with("_destroy") => Some("taken"),
            _ => None,
        }
    }
}

/// Whether a comment says that a parameter "may be NULL" or what "NULL" means.
fn says_null(doc: &str, name: &str) -> bool {
    statements(doc, name)
        .iter()
        .any(|statement| statement.starts_with("may be NULL") || statement.starts_with("NULL"))
}

/// What a comment says of a parameter: the text behind `` `name`: `` or `` `a`, `name`: ``, to the end of the sentence.
fn statements(doc: &str, name: &str) -> Vec<String> {
    let doc = doc.replace('\n', " ");
    let quoted = format!("`{name}`");
    let mut found = Vec::new();
    for (at, _) in doc.match_indices(&quoted) {
        let mut rest = &doc[at + quoted.len()..];
        while let Some(next) = rest.strip_prefix(", `") {
            rest = next.split_once('`').map_or("", |(_, after)| after);
        }
        if let Some(statement) = rest.strip_prefix(": ") {
            found.push(statement.split(". ").next().unwrap_or_default().to_owned());
        }
    }
    found
}

/// Whether a parameter is a pointer in C.
fn is_address(api: &Api, kind: &Kind) -> bool {
    !kind.pointers.is_empty() || api.callbacks.iter().any(|callback| callback.name == kind.base)
}

/// A type as C writes it, without a name.
pub fn c_type(kind: &Kind) -> String {
    let mut text = c_base(&kind.base).to_owned();
    for (level, &constant) in kind.pointers.iter().enumerate() {
        match (level, constant) {
            (0, true) => text = format!("const {text} *"),
            (0, false) => text.push_str(" *"),
            (_, true) => text.push_str("const *"),
            (_, false) => text.push('*'),
        }
    }
    text
}

fn c_base(base: &str) -> &str {
    match base {
        "c_char" => "char",
        "c_void" => "void",
        "usize" => "size_t",
        "i32" => "int32_t",
        "i64" => "int64_t",
        "u8" => "uint8_t",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "f32" => "float",
        "f64" => "double",
        "DLManagedTensor" => "struct DLManagedTensor",
        "DLManagedTensorVersioned" => "struct DLManagedTensorVersioned",
        "rukh_table" => "struct rukh_table",
        other => other,
    }
}
