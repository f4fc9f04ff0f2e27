//! Programmatic dependent launches: kernels that may be started while those before them in the stream still run.

/// Waits until the kernels before have ended and their writes are seen, and then lets the next kernel start as soon as
/// every workgroup of this one came here, so that one kernel at a time stands by. All kernels wait first of all, so that
/// memory is ordered as without. Where a kernel is launched the usual way both do nothing.
const HEAD: &str = "\tgriddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;\n";

/// What LLVM writes before the first instruction of a function, behind its declarations.
const FIRST_BLOCK: &str = "// %bb.0:";

/// PTX whose kernels begin with `HEAD`. `Err` names a kernel whose beginning was not found.
pub(super) fn wait_at_heads(ptx: &str) -> Result<String, String> {
    let mut text = String::with_capacity(ptx.len());
    let mut kernel = None;
    for line in ptx.split_inclusive('\n') {
        let declared = line.split_once(".entry ").map(|(_, name)| name.trim_end_matches(['(', '\n']));
        if let (Some(before), true) = (kernel, declared.is_some() || line.starts_with('}')) {
            return Err(String::from(before));
        }
        kernel = declared.or(kernel);
        text.push_str(line);
        if line.starts_with(FIRST_BLOCK) && kernel.take().is_some() {
            text.push_str(HEAD);
        }
    }
    kernel.map_or(Ok(text), |name| Err(String::from(name)))
}
