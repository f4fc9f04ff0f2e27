//! The library as programs open it: in a process of its own, with environment variables.

use std::path::PathBuf;
use std::process::{Command, Output};

/// A C program that is linked with nothing and looks everything up.
const HEAD: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
static void *library;
static void *find(const char *name) {
  void *found = dlsym(library, name);
  if (!found) { printf("no %s\n", name); exit(3); }
  return found;
}
int main(int count, char **arguments) {
  library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) { printf("%s\n", dlerror()); return 2; }
  int (*hipMalloc)(void **, size_t) = find("hipMalloc");
  int (*hipFree)(void *) = find("hipFree");
  int (*hipRuntimeGetVersion)(int *) = find("hipRuntimeGetVersion");
  int (*hipGetProcAddress)(const char *, void **, int, unsigned long, int *) = find("hipGetProcAddress");
  void *memory = 0, *function = 0;
  int version = 0, status = 9;
"#;

/// The library, which Cargo builds for this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own file");
    let folder = test.parent().expect("its folder");
    let places = [folder.join("libamdhip64.so"), folder.join("../libamdhip64.so")];
    places.into_iter().find(|it| it.exists()).expect("the library beside the test")
}

/// What a program with this body does. The library is opened as `libamdhip64.so.7`.
fn run(name: &str, body: &str, variables: &[(&str, &str)]) -> Option<Output> {
    let folder = std::env::temp_dir().join(format!("amdemu-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let (source, program, link) =
        (folder.join("main.c"), folder.join("main"), folder.join("libamdhip64.so.7"));
    std::fs::write(&source, format!("{HEAD}{body}\n}}\n")).expect("a temporary file");
    let built = Command::new("cc").arg(&source).arg("-o").arg(&program).arg("-ldl").status();
    if !built.is_ok_and(|status| status.success()) {
        println!("skipped: there is no C compiler");
        return None;
    }
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(library(), &link).expect("a link");
    let output =
        Command::new(&program).arg(&link).envs(variables.iter().copied()).output().expect("the program runs");
    std::fs::remove_dir_all(&folder).expect("the temporary folder");
    Some(output)
}

#[test]
fn the_version_follows_the_name_of_the_file() {
    let body = r#"hipRuntimeGetVersion(&version); printf("%d", version / 10000000); return 0;"#;
    let Some(output) = run("version", body, &[]) else { return };
    assert_eq!(String::from_utf8_lossy(&output.stdout), "7");
    let Some(output) = run("major", body, &[("AMDEMU_HIP_MAJOR", "5")]) else { return };
    assert_eq!(String::from_utf8_lossy(&output.stdout), "5");
}

#[test]
fn functions_are_found_by_name() {
    let body = r#"
  int error = hipGetProcAddress("hipFree", &function, 60000, 0, &status);
  if (error || status != 0 || function != (void *)hipFree) return 4;
  error = hipGetProcAddress("hipNothing", &function, 60000, 0, &status);
  return error == 1 && status == 1 && !function ? 0 : 5;"#;
    let Some(output) = run("lookup", body, &[]) else { return };
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn what_is_left_ends_the_process_with_a_status() {
    for (body, status) in
        [("hipMalloc(&memory, 64); return 0;", 86), ("hipMalloc(&memory, 64); hipFree(memory); return 5;", 5)]
    {
        let Some(output) = run("leaks", body, &[("AMDEMU_LEAKS", "1")]) else { return };
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(text.contains("leak: 64 bytes of device memory"), status == 86, "{text}");
    }
}

#[test]
fn mistakes_in_the_environment_are_reported_once() {
    let body = "hipMalloc(&memory, 64); hipFree(memory); return 0;";
    let Some(output) = run("environment", body, &[("AMDEMU_ARCH", "gfx7"), ("AMDEMU_X", "1")]) else {
        return;
    };
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(text.matches("AMDEMU_ARCH=gfx7").count(), 1, "{text}");
    assert_eq!(text.matches("AMDEMU_X is unknown").count(), 1, "{text}");
}

#[test]
fn calls_are_traced() {
    let body = "hipMalloc(&memory, 64); hipFree(memory); hipFree(memory); return 0;";
    let Some(output) = run("trace", body, &[("AMDEMU_API_TRACE", "1")]) else { return };
    let text = String::from_utf8_lossy(&output.stderr);
    for line in [
        "hipMalloc(64) = hipSuccess",
        "hipFree(0x",
        "is in an allocation that was freed",
        "hipErrorInvalidValue",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn a_host_program_cannot_follow_a_device_address() {
    let body = "hipMalloc(&memory, 64); return *(volatile int *)memory;";
    let Some(output) = run("follow", body, &[]) else { return };
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{output:?}");
}
