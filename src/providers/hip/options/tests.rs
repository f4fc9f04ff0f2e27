use super::*;

fn parse(entries: &[(&str, &str)]) -> Result<HipOptions> {
    HipOptions::parse(&entries.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
}

#[test]
fn what_entries_tell_can_be_parsed_again() {
    for entries in [
        &[][..],
        &[
            ("device_id", "2"),
            ("gpu_mem_limit", "1048576"),
            ("gpu_mem_fraction", "0.25"),
            ("launch_blocking", "1"),
            ("chain_products", "0"),
            ("arena_extend_strategy", "kSameAsRequested"),
        ],
        &[("user_compute_stream", "4096"), ("enable_hip_graph", "1"), ("do_copy_in_default_stream", "0")],
        &[("gpu_external_alloc", "0x10"), ("gpu_external_free", "32"), ("gpu_external_empty_cache", "48")],
        &[("default_memory_arena_cfg", "max_mem=1024;arena_extend_strategy=1")],
        &[
            ("tunable_op_enable", "True"),
            ("tunable_op_file", "results.txt"),
            ("tunable_op_max_tuning_duration_ms", "30"),
        ],
    ] {
        let options = parse(entries).unwrap();
        let again = HipOptions::parse(&options.entries()).unwrap();
        assert_eq!(again.entries(), options.entries(), "{entries:?}");
        assert_eq!(options.entries().len(), KEYS.len());
    }
}

#[test]
fn wrong_options_say_what_is_allowed() {
    for (entries, part) in [
        (&[("gpu_mem_fraction", "0")][..], "\"0\" is not allowed; allowed is a number above 0 and at most 1"),
        (&[("gpu_mem_fraction", "1.5")], "\"1.5\" is not allowed"),
        (&[("gpu_mem_fraction", "NaN")], "\"NaN\" is not allowed"),
        (
            &[("gpu_mem_fraction", "0.5"), ("gpu_external_alloc", "16"), ("gpu_external_free", "16")],
            "cannot be used together",
        ),
        (&[("launch_blocking", "yes")], "\"yes\" is not allowed; allowed is 0 or 1"),
        (&[("devce_id", "0")], "Unknown provider option: \"devce_id\". The hip provider has arena"),
        (&[("device_id", "-1")], "Failed to parse provider option \"device_id\": \"-1\""),
        (&[("do_copy_in_default_stream", "2")], "allowed is 0 or 1"),
        (&[("gpu_external_alloc", "16")], "must be given together"),
        (&[("gpu_external_alloc", "sixteen")], "not an address"),
        (&[("default_memory_arena_cfg", "max_memory=4")], "max_mem"),
        (&[("fp16_enable", "1"), ("bf16_enable", "1")], "give one of them"),
        (&[("tunable_op_enable", "yes")], "\"yes\" is not allowed; allowed is 0 or 1"),
        (&[("tunable_op_max_tuning_duration_ms", "-1")], "allowed is a number of milliseconds, or 0"),
        (
            &[("user_compute_stream", "16"), ("gpu_external_alloc", "16"), ("gpu_external_free", "16")],
            "cannot be used together",
        ),
    ] {
        let error = parse(entries).unwrap_err();
        assert!(error.message.contains(part), "{entries:?}: {error}");
    }
}

#[test]
fn the_arena_configuration_overrides_limit_and_strategy() {
    let alone = parse(&[("gpu_mem_limit", "4096"), ("arena_extend_strategy", "1")]).unwrap().arena();
    assert_eq!((alone.max_mem, alone.arena_extend_strategy), (4096, ExtendStrategy::SameAsRequested));
    let both = parse(&[("gpu_mem_limit", "4096"), ("default_memory_arena_cfg", "max_mem=512")]).unwrap();
    assert_eq!(both.arena().max_mem, 512);
}

#[test]
fn what_is_set_binds_more_than_the_environment() {
    let there = |name: &str| {
        let all = [
            ("RUKH_TUNABLE_OP_ENABLE", "1"),
            ("ORT_ROCM_TUNABLE_OP_ENABLE", "0"),
            ("ORT_ROCM_TUNABLE_OP_TUNING_ENABLE", "1"),
        ];
        all.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
    };
    let parse = |entries: &[(&str, &str)]| {
        let entries = entries.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        HipOptions::parse_in(&entries, &there).unwrap().tuning()
    };
    assert_eq!((parse(&[]).enable, parse(&[]).tune), (Some(true), true));
    assert_eq!(parse(&[("tunable_op_enable", "0")]).enable, Some(false));
    let wrong = |name: &str| (name == "RUKH_TUNABLE_OP_ENABLE").then(|| "on".to_owned());
    let error = HipOptions::parse_in(&BTreeMap::new(), &wrong).unwrap_err();
    assert!(error.message.starts_with("environment variable RUKH_TUNABLE_OP_ENABLE: "), "{error}");
}

#[test]
fn a_part_of_the_memory_is_a_number_of_bytes() {
    assert_eq!(parse(&[]).unwrap().share(1 << 30), None);
    assert_eq!(parse(&[("gpu_mem_fraction", "1")]).unwrap().share(1 << 30), None);
    assert_eq!(parse(&[("gpu_mem_fraction", "0.25")]).unwrap().share(1 << 30), Some(1 << 28));
}

#[test]
fn launches_that_are_waited_for_are_no_graph() {
    let both = parse(&[("launch_blocking", "1"), ("enable_hip_graph", "1")]).unwrap();
    assert!(both.remarks().iter().any(|remark| remark.starts_with("enable_hip_graph is 1")));
    assert!(parse(&[("launch_blocking", "1")]).unwrap().remarks().is_empty());
    let variable = |name: &str| (name == "RUKH_HIP_LAUNCH_BLOCKING").then(|| "1".to_owned());
    assert!(HipOptions::parse_in(&BTreeMap::new(), &variable).unwrap().launch_blocking);
}
