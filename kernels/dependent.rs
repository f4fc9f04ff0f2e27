//! Programmatic dependent launches: kernels that may be started while those before them in the stream still run.

/// Waits until the kernels before have ended and their writes are seen, and then lets the next kernel start as soon as
/// every workgroup of this one came here. Kernels wait first of all, so that memory is ordered as without, but for those that
/// say themselves where they wait (`wait_for_kernels_before` in `device.h`, which tells what may come before). Where a kernel
/// is launched the usual way both do nothing.
const HEAD: &str = "\tgriddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;\n";

/// What LLVM writes before the first instruction of a function, behind its declarations.
const FIRST_BLOCK: &str = "// %bb.0:";
/// What stands before the name of a kernel.
const ENTRY: &str = ".entry ";

/// PTX whose kernels begin with `HEAD` or wait elsewhere. `Err` names a kernel whose beginning was not found.
pub(super) fn wait_at_heads(ptx: &str) -> Result<String, String> {
    let mut parts = ptx.split(ENTRY);
    let mut text = String::from(parts.next().unwrap_or_default());
    for kernel in parts {
        let (body, rest) = kernel.split_at(kernel.find("\n}").unwrap_or(kernel.len()));
        text.push_str(ENTRY);
        if body.contains("griddepcontrol.wait") {
            text.push_str(kernel);
            continue;
        }
        let Some((before, block)) = body.split_once(FIRST_BLOCK).filter(|(_, block)| block.contains('\n'))
        else {
            return Err(String::from(body.split(['(', '\n']).next().unwrap_or(body)));
        };
        let (remark, block) = block.split_at(block.find('\n').map_or(block.len(), |end| end + 1));
        text.extend([before, FIRST_BLOCK, remark, HEAD, block, rest]);
    }
    Ok(text)
}
