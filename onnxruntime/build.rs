//! Links the C library to an installed librukh, whose folder `RUKH_LINK_FOLDER` names. Without it the library has no
//! entry for librukh: a program that loads it has librukh loaded before.

fn main() {
    println!("cargo::rerun-if-env-changed=RUKH_LINK_FOLDER");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    if let Ok(folder) = std::env::var("RUKH_LINK_FOLDER") {
        for argument in [&format!("-L{folder}"), "-lrukh", "-Wl,-rpath,$ORIGIN"] {
            println!("cargo::rustc-cdylib-link-arg={argument}");
        }
    }
}
