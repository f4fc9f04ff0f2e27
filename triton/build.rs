//! Links the backend to an installed librukh, whose folder `RUKH_LINK_FOLDER` names: it is looked for in the backend's own
//! folder first, then there where `make install-triton` puts it. Without it the backend has no entry for librukh. The
//! functions of the server are found in the program that opens the backend.

fn main() {
    println!("cargo::rerun-if-env-changed=RUKH_LINK_FOLDER");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // Unit tests run without a server and call none of its functions.
    println!("cargo::rustc-link-arg=-Wl,--unresolved-symbols=ignore-in-object-files");
    if let Ok(folder) = std::env::var("RUKH_LINK_FOLDER") {
        let paths = "-Wl,-rpath,$ORIGIN:$ORIGIN/../../lib";
        for argument in [&format!("-L{folder}"), "-lrukh", paths] {
            println!("cargo::rustc-cdylib-link-arg={argument}");
        }
    }
}
