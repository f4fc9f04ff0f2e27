//! The functions as a table of pointers: `include/rukh/rukh_table.h` for C, `src/capi/table.rs` for the library. The order
//! is that of a file which only grows, so that a member stays where the first header with it put it.

use std::fmt::Write;

use crate::api::{Api, Function};
use crate::attributes;
use crate::declarations::formatted;
use crate::description::c_type;

/// The names of the table's functions, a line each, in their order.
pub const ORDER: &str = "abi/rukh-table.txt";

/// The function that gives the table; it has no place in it.
const GIVES: &str = "rukh_api";

const HEAD: &str = "\
#ifndef RUKH_TABLE_H
#define RUKH_TABLE_H

/*
 * The functions of rukh.h as a table of pointers, for who loads the library at run time. One symbol is looked up:
 *
 *   const rukh_table *(*api)(uint32_t);
 *   *(void **)&api = dlsym(library, \"rukh_api\");
 *   const rukh_table *rukh = api(RUKH_ABI_VERSION);
 *   if (rukh == NULL) { ... the library is older than this header, or of another series ... }
 *   rukh->environment_create(options, &environment, &error);
 *
 * A member has the name of its function without \"rukh_\", and its contract. New functions come at the end: a
 * table has more members than an older header names, never others. This file is made from the library's source.
 */

#include <rukh/rukh.h>

#ifdef __cplusplus
extern \"C\" {
#endif

typedef struct rukh_table {
    /** How many functions follow. */
    size_t count;
";

const TAIL: &str = "\
} rukh_table;

#ifdef __cplusplus
}
#endif

#endif  /* RUKH_TABLE_H */
";

/// The order with the functions that it does not have yet at its end.
pub fn with_new_functions(order: &str, api: &Api) -> String {
    let known: Vec<&str> = order.lines().collect();
    let new = api.functions.iter().map(|function| &*function.name);
    let new = new.filter(|name| *name != GIVES && !known.contains(name));
    known.iter().copied().chain(new).fold(String::new(), |text, name| text + name + "\n")
}

pub fn header(order: &str, api: &Api) -> String {
    let mut out = HEAD.to_owned();
    for function in functions(order, api) {
        let returned = function.returns.as_ref().map_or("void".to_owned(), c_type);
        let space = if returned.ends_with('*') { "" } else { " " };
        let member = function.name.trim_start_matches("rukh_");
        let parameters = function.parameters.iter().map(|parameter| {
            let ty = c_type(&parameter.kind);
            let space = if ty.ends_with('*') { "" } else { " " };
            // As cbindgen does with what is a word of C++.
            let end = if parameter.name == "operator" { "_" } else { "" };
            format!("{ty}{space}{}{end}", parameter.name)
        });
        let parameters = match parameters.collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => "void".to_owned(),
            some => some,
        };
        for mark in attributes::deprecated(function).lines() {
            writeln!(out, "    {mark}").unwrap();
        }
        writeln!(out, "    {returned}{space}(*{member})({parameters});").unwrap();
    }
    out + TAIL
}

/// The static that the library gives a pointer to. Its elements are addresses of any type: C knows their types.
pub fn rust(order: &str, api: &Api) -> String {
    let functions = functions(order, api);
    let mut out = format!(
        "//! The functions as a table of pointers, in the order of {ORDER}. Made from the other files here by
         //! `RUKH_UPDATE=1 cargo test --test header`.
         // What is deprecated stays where it was.
         #![allow(deprecated)]

         /// What `rukh/rukh_table.h` declares: how many functions there are, and their addresses.
         #[repr(C)]
         pub struct rukh_table {{
             count: usize,
             functions: [*const (); {0}],
         }}

         // SAFETY: Only addresses of functions, which nothing changes.
         unsafe impl Sync for rukh_table {{}}

         pub(super) static TABLE: rukh_table = rukh_table {{ count: {0}, functions: [\n",
        functions.len()
    );
    for function in functions {
        writeln!(out, "super::{}::{} as *const (),", function.source, function.name).unwrap();
    }
    formatted(&(out + "] };\n"))
}

fn functions<'a>(order: &'a str, api: &'a Api) -> Vec<&'a Function> {
    let of_name = |name: &str| api.functions.iter().find(|function| function.name == name);
    let missing = |name: &str| panic!("{ORDER} names {name}, which is gone: what programs may call stays");
    order.lines().map(|name| of_name(name).unwrap_or_else(|| missing(name))).collect()
}
