//! What the build writes into kernels for sm_90.

#[path = "../kernels/cluster.rs"]
mod cluster;
#[path = "../kernels/comments.rs"]
mod comments;
#[path = "../kernels/dependent.rs"]
mod dependent;

#[test]
fn kernels_with_such_names_have_clusters() {
    let kernel = |name: &str, directives: &str| {
        format!(
            ".visible .entry {name}(\n\t.param .b64 p\n)\n.maxntid 160, 1, 1{directives}\n{{\n\tret;\n}}\n"
        )
    };
    let cluster = "\n.explicitcluster\n.reqnctapercluster 4, 1, 1";
    let (a, b) = (kernel("a", ""), kernel("clusters", ""));
    let text = a.clone() + &kernel("b_cluster4", "") + &b;
    assert_eq!(cluster::with_clusters(&text), Ok(a + &kernel("b_cluster4", cluster) + &b));
    let other = kernel("b_cluster4", "").replace("\n{", " {");
    assert_eq!(cluster::with_clusters(&other), Err("b_cluster4".to_owned()));
}

#[test]
fn comments_and_indentation_are_left_out() {
    let text = "//\n// Generated\n\n.version 8.0\n\t.reg .b32 \t%r<2>; // registers\n// begin inline asm\n\tbar.sync 0;\n\n";
    assert_eq!(comments::without_comments(text), ".version 8.0\n.reg .b32 \t%r<2>;\nbar.sync 0;\n");
}

#[test]
fn every_kernel_waits_before_its_first_instruction() {
    let head = "\tgriddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;\n";
    let kernel = |name: &str, head: &str| {
        format!(
            ".visible .entry {name}(\n\t.param .align 8 .b8 {name}_param_0[96]\n)\n.maxntid 256, 1, 1\n{{\n\
             \t.reg .b32 \t%r<9>;\n\t.shared .align 4 .b8 lds[64];\n// %bb.0:\n{head}\tmov.u32 \t%r1, %tid.x;\n\
             $L__BB0_1:\n\tret;\n}}\n"
        )
    };
    let function =
        ".func  (.param .b32 r) f(\n\t.param .b32 a\n)\n{\n\t.reg .b32 \t%r<2>;\n// %bb.0:\n\tret;\n}\n";
    for (kernels, expected) in [
        (vec![function.to_owned()], vec![function.to_owned()]),
        (vec![kernel("a", "")], vec![kernel("a", head)]),
        (
            vec![kernel("a", ""), function.to_owned(), kernel("b", "")],
            vec![kernel("a", head), function.to_owned(), kernel("b", head)],
        ),
    ] {
        assert_eq!(dependent::wait_at_heads(&kernels.concat()), Ok(expected.concat()));
    }
    // A compiler that writes it otherwise is met while building.
    let other = kernel("a", "").replace("// %bb.0:", "entry:");
    for text in [other.clone(), other.clone() + &kernel("b", ""), kernel("b", "") + &other, other + function]
    {
        assert_eq!(dependent::wait_at_heads(&text), Err("a".to_owned()));
    }
}
