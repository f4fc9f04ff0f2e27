//! Lists of operators that the caller defined.

use std::sync::Arc;

use crate::error::{Result, fail};
use crate::ops::custom::Definition;

/// Adds operators to a list, in which domain, name and version come once: all of them, or none.
pub(super) fn add(list: &mut Vec<Arc<Definition>>, operators: Vec<Arc<Definition>>, who: &str) -> Result<()> {
    let before = list.len();
    for definition in operators {
        if list.iter().any(|other| other.is_same(&definition)) {
            list.truncate(before);
            let op = definition.op();
            fail!(
                InvalidArgument,
                "{who} an operator {op} of version {} already; each version of an operator can be added once",
                op.opset
            );
        }
        list.push(definition);
    }
    Ok(())
}
