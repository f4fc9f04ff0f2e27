//! What `src/capi` exports, read from its source: constants, types, functions with what each parameter is for.

use std::path::Path;

use syn::{Attribute, Expr, FnArg, Item, ItemConst, ItemFn, ItemStruct, ItemType, Lit, ReturnType, Type};

/// The binary interface.
#[derive(Default)]
pub struct Api {
    pub constants: Vec<Constant>,
    /// Integer types that only have defined values.
    pub enums: Vec<Named>,
    /// Types of which only pointers exist.
    pub handles: Vec<Named>,
    pub callbacks: Vec<Function>,
    pub functions: Vec<Function>,
}

pub struct Named {
    pub name: String,
    pub doc: String,
}

pub struct Constant {
    pub name: String,
    pub doc: String,
    /// An enum, or an integer type.
    pub ty: String,
    pub value: i64,
}

pub struct Function {
    pub name: String,
    pub doc: String,
    /// The file that has it, without its extension; of a function only.
    pub source: String,
    /// The version of the binary interface that brought it, as `major.minor.patch`.
    pub since: String,
    /// What takes its place, where it is deprecated.
    pub deprecated: Option<String>,
    pub returns: Option<Kind>,
    pub parameters: Vec<Parameter>,
}

pub struct Parameter {
    pub name: String,
    pub kind: Kind,
}

/// A type: what `pointers` lead to, from the innermost. An element is true where the pointee is constant.
#[derive(Clone)]
pub struct Kind {
    pub base: String,
    pub pointers: Vec<bool>,
}

/// Reads files of `folder`, in their order.
pub fn read(folder: &Path, sources: &[&str]) -> Api {
    let mut api = Api::default();
    for source in sources {
        let path = folder.join(format!("{source}.rs"));
        let text = std::fs::read_to_string(&path).unwrap();
        for item in syn::parse_file(&text).unwrap().items {
            match item {
                Item::Const(item) if is_public(&item.vis) => api.constants.push(constant(&item)),
                Item::Type(item) if is_public(&item.vis) => add_type(&mut api, &item),
                Item::Struct(item) if is_public(&item.vis) && item.ident.to_string().starts_with("rukh_") => {
                    api.handles.push(handle(&item));
                }
                Item::Fn(item) if exported(&item.attrs) => api.functions.push(function(&item, source)),
                _ => {}
            }
        }
    }
    api
}

fn is_public(visibility: &syn::Visibility) -> bool {
    matches!(visibility, syn::Visibility::Public(_))
}

fn exported(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("unsafe")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("no_mangle"))
    })
}

fn constant(item: &ItemConst) -> Constant {
    Constant {
        name: item.ident.to_string(),
        doc: doc(&item.attrs),
        ty: kind(&item.ty).base,
        value: integer(&item.expr),
    }
}

fn integer(expression: &Expr) -> i64 {
    match expression {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(value) => value.base10_parse().unwrap(),
            _ => panic!("a constant of the C API is an integer"),
        },
        Expr::Unary(negative) => -integer(&negative.expr),
        _ => panic!("a constant of the C API is a literal"),
    }
}

fn handle(item: &ItemStruct) -> Named {
    Named { name: item.ident.to_string(), doc: doc(&item.attrs) }
}

/// An enum is another name for an integer, a callback one for an optional function.
fn add_type(api: &mut Api, item: &ItemType) {
    let name = item.ident.to_string();
    match callback(&item.ty) {
        Some(bare) => {
            let arguments = bare.inputs.iter().map(|argument| {
                let name = &argument.name.as_ref().expect("a callback's parameter has a name").0;
                Parameter { name: name.to_string(), kind: kind(&argument.ty) }
            });
            let parameters = arguments.collect();
            let doc = doc(&item.attrs);
            api.callbacks.push(Function {
                name,
                source: String::new(),
                since: since(&doc),
                doc,
                deprecated: None,
                returns: returned(&bare.output),
                parameters,
            });
        }
        None => api.enums.push(Named { name, doc: doc(&item.attrs) }),
    }
}

/// The function in `Option<fn>`.
fn callback(ty: &Type) -> Option<&syn::TypeBareFn> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        syn::GenericArgument::Type(Type::BareFn(bare)) if last.ident == "Option" => Some(bare),
        _ => None,
    }
}

fn function(item: &ItemFn, source: &str) -> Function {
    let arguments = item.sig.inputs.iter().map(|argument| {
        let FnArg::Typed(argument) = argument else { panic!("an exported function has no self") };
        let syn::Pat::Ident(name) = &*argument.pat else { panic!("a parameter is a name") };
        Parameter { name: name.ident.to_string(), kind: kind(&argument.ty) }
    });
    let doc = doc(&item.attrs);
    Function {
        name: item.sig.ident.to_string(),
        source: source.to_owned(),
        since: since(&doc),
        deprecated: deprecated(&item.attrs),
        parameters: arguments.collect(),
        returns: returned(&item.sig.output),
        doc,
    }
}

fn returned(output: &ReturnType) -> Option<Kind> {
    match output {
        ReturnType::Default => None,
        ReturnType::Type(_, ty) => Some(kind(ty)),
    }
}

fn kind(ty: &Type) -> Kind {
    match ty {
        Type::Ptr(pointer) => {
            let mut inner = kind(&pointer.elem);
            inner.pointers.push(pointer.const_token.is_some());
            inner
        }
        Type::Path(path) => {
            let base = path.path.segments.last().unwrap().ident.to_string();
            Kind { base, pointers: Vec::new() }
        }
        _ => panic!("a type of the C API is a name or a pointer"),
    }
}

/// The version that a comment names as `Since: 0.1.2.`; without it the first.
fn since(doc: &str) -> String {
    let named = doc.split_once("Since: ").map(|(_, rest)| rest.split_whitespace().next().unwrap_or_default());
    named.map_or("0.1.0", |version| version.trim_end_matches('.')).to_owned()
}

/// The note of `#[deprecated(note = "…")]`.
fn deprecated(attributes: &[Attribute]) -> Option<String> {
    let attribute = attributes.iter().find(|attribute| attribute.path().is_ident("deprecated"))?;
    let pair: syn::MetaNameValue =
        attribute.parse_args().expect("a deprecated function has a note and nothing else");
    match &pair.value {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Str(text) => Some(text.value()),
            _ => panic!("the note is a text"),
        },
        _ => panic!("the note is a literal"),
    }
}

fn doc(attributes: &[Attribute]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        let syn::Meta::NameValue(pair) = &attribute.meta else { continue };
        let Expr::Lit(literal) = &pair.value else { continue };
        if let Lit::Str(text) = &literal.lit {
            lines.push(text.value().trim().to_owned());
        }
    }
    lines.join("\n")
}
