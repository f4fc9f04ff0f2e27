use super::super::options::Options;

fn parse(variables: &[(&str, &str)]) -> (Options, Vec<String>) {
    let variables: Vec<(String, String)> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Options::parse(&variables, Some(5))
}

#[test]
fn values_that_are_understood() {
    let (options, complaints) = parse(&[
        ("ARCH", "gfx90a"),
        ("DEVICES", "2"),
        ("VRAM_MB", "64"),
        ("DEFER", "1"),
        ("FAIL", "alloc:3,copy:2"),
        ("NAME", ""),
        ("THREADS", "2"),
    ]);
    assert_eq!(complaints, Vec::<String>::new());
    assert_eq!((options.target.name, options.devices, options.memory.limit), ("gfx90a", 2, 64 << 20));
    assert!(options.defer && !options.leaks);
    assert_eq!((options.hip_major, options.fail_at.len()), (5, 2));
}

#[test]
fn each_mistake_is_reported() {
    for (name, value, text) in [
        ("ARCH", "gfx1", "a target such as gfx90a"),
        ("DEVICES", "65", "0 to 64"),
        ("DEVICES", "x", "0 to 64"),
        ("VRAM_MB", "0", "1 to 1048576"),
        ("HIP_MAJOR", "8", "5, 6 or 7"),
        ("DEFER", "yes", "0 or 1"),
        ("FAIL", "alloc", "alloc:N"),
        ("FAIL", "alloc:0", "alloc:N"),
        ("FAIL", "malloc:1", "alloc:N"),
        ("ARCHH", "gfx90a", "AMDEMU_ARCHH is unknown; there are ARCH, DEVICES"),
    ] {
        let (_, complaints) = parse(&[(name, value)]);
        assert_eq!(complaints.len(), 1, "{name}={value}");
        assert!(complaints[0].contains(text), "{}", complaints[0]);
    }
}
