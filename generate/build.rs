//! Links the C library to an installed librukh, whose folder `RUKH_LINK_FOLDER` names. Without it the library has no
//! entry for librukh: a program that loads it has librukh loaded before.

fn main() {
    println!("cargo::rerun-if-env-changed=RUKH_LINK_FOLDER");
    println!("cargo::rerun-if-changed=build.rs");
    let linux = std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux");
    if linux {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
    if let Ok(folder) = std::env::var("RUKH_LINK_FOLDER") {
        // Windows looks beside the program.
        let beside = if linux { "-Wl,-rpath,$ORIGIN" } else { "" };
        for argument in [&format!("-L{folder}"), "-lrukh", beside].into_iter().filter(|text| !text.is_empty())
        {
            println!("cargo::rustc-cdylib-link-arg={argument}");
        }
    }
}
