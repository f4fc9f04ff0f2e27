//! Clusters of workgroups on sm_90: how many workgroups a cluster of a kernel has is said in PTX, as Clang 19 has no
//! attribute for it.

/// What stands in the name of a kernel before the workgroups of its cluster.
const NAMED: &str = "_cluster";
/// What stands before the name of a kernel.
const ENTRY: &str = ".entry ";

/// PTX whose kernels of such names have their clusters. `Err` names a kernel whose body was not found.
pub(super) fn with_clusters(ptx: &str) -> Result<String, String> {
    let mut kernels = ptx.split(ENTRY);
    let mut text = String::from(kernels.next().unwrap_or_default());
    for kernel in kernels {
        text.push_str(ENTRY);
        let name = kernel.split(['(', '\n']).next().unwrap_or(kernel);
        let workgroups = name.rsplit_once(NAMED).and_then(|(_, count)| count.parse::<u32>().ok());
        match (workgroups, kernel.split_once("\n{")) {
            (None, _) => text.push_str(kernel),
            (Some(count), Some((head, body))) => {
                text += &format!("{head}\n.explicitcluster\n.reqnctapercluster {count}, 1, 1\n{{{body}");
            }
            (Some(_), None) => return Err(name.to_owned()),
        }
    }
    Ok(text)
}
