//! Options of sessions and providers, and which functions are refused.

mod support;

use std::ffi::{CStr, c_char};
use std::ptr::null_mut;

use ort_sys::OrtErrorCode::*;
use ort_sys::*;
use support::*;

#[test]
fn entries_are_kept() {
    let options = Options::new();
    options.entry("session.my.key", "a value").unwrap();
    options.entry("session.my.key", "another value").unwrap();
    assert_eq!(options.entry("", "x").err().unwrap().0, ORT_INVALID_ARGUMENT);
    // SAFETY: live objects and places for results, in all of this file.
    unsafe {
        let clone = Options(get(|out| (api().CloneSessionOptions)(options.0, out)).unwrap());
        for options in [&options, &clone] {
            assert_eq!(
                get(|out| (api().HasSessionConfigEntry)(options.0, c"session.my.key".as_ptr(), out)),
                Ok(1)
            );
            assert_eq!(get(|out| (api().HasSessionConfigEntry)(options.0, c"none".as_ptr(), out)), Ok(0));
            let entry = |buffer: *mut c_char, size: &mut usize| {
                check((api().GetSessionConfigEntry)(options.0, c"session.my.key".as_ptr(), buffer, size))
            };
            let mut size = 0;
            entry(null_mut(), &mut size).unwrap();
            assert_eq!(size, "another value".len() + 1);
            let mut buffer = vec![0_u8; size];
            entry(buffer.as_mut_ptr().cast(), &mut size).unwrap();
            assert_eq!(CStr::from_bytes_with_nul(&buffer), Ok(c"another value"));
            assert!(entry(buffer.as_mut_ptr().cast(), &mut 3).is_err());
        }
    }
}

/// What opening the small model with a change of the options gives.
fn opened(change: impl FnOnce(&Options)) -> Result<()> {
    let env = Env::new();
    let options = Options::new();
    change(&options);
    env.open(&small("linear"), Some(&options)).map(drop)
}

#[test]
fn entries_that_mean_something() {
    for (key, value, expected) in [
        ("session.load_model_format", "ONNX", None),
        ("session.intra_op.allow_spinning", "0", None),
        ("session.disable_cpu_ep_fallback", "0", None),
        ("session.load_model_format", "ORT", Some(ORT_NOT_IMPLEMENTED)),
        ("ep.context_enable", "1", Some(ORT_NOT_IMPLEMENTED)),
    ] {
        let result = opened(|options| options.entry(key, value).unwrap());
        assert_eq!(result.as_ref().err().map(|(code, _)| *code), expected, "{key}");
        if let Err((_, message)) = result {
            assert!(message.contains(key), "{message}");
        }
    }
}

#[test]
fn other_options() {
    // SAFETY: as above.
    unsafe {
        opened(|options| {
            check((api().SetIntraOpNumThreads)(options.0, 2)).unwrap();
            check((api().SetInterOpNumThreads)(options.0, 1)).unwrap();
            check((api().SetSessionGraphOptimizationLevel)(
                options.0,
                GraphOptimizationLevel::ORT_DISABLE_ALL,
            ))
            .unwrap();
            check((api().DisableMemPattern)(options.0)).unwrap();
            check((api().DisableCpuMemArena)(options.0)).unwrap();
            check((api().SetDeterministicCompute)(options.0, true)).unwrap();
            assert!(check((api().SetIntraOpNumThreads)(options.0, -1)).is_err());
        })
        .unwrap();
        let path = std::env::temp_dir().join(format!("rukh-optimized-{}.onnx", std::process::id()));
        let name = text(path.to_str().unwrap());
        let weights = path.with_extension("weights");
        opened(|options| {
            check((api().SetOptimizedModelFilePath)(options.0, name.as_ptr())).unwrap();
            let entry = |key: &str, value: &str| {
                options
                    .entry(&format!("session.optimized_model_external_initializers_{key}"), value)
                    .unwrap();
            };
            entry("file_name", weights.file_name().unwrap().to_str().unwrap());
            entry("min_size_in_bytes", "1");
        })
        .unwrap();
        assert!(weights.metadata().unwrap().len() > 0);
        let env = Env::new();
        let saved = env.open(&name, None).unwrap();
        let x = Value::floats(&[1, 4], &[1.0; 4]);
        let expected = env.open(&small("linear"), None).unwrap().run(&[("x", &x)], &["y"]).unwrap();
        assert_eq!(saved.run(&[("x", &x)], &["y"]).unwrap()[0].to_vec::<f32>(), expected[0].to_vec::<f32>());
        std::fs::remove_file(path).unwrap();
        std::fs::remove_file(weights).unwrap();
    }
}

#[test]
fn dimensions_by_name() {
    let env = Env::new();
    let options = Options::new();
    // SAFETY: as above.
    unsafe {
        check((api().AddFreeDimensionOverrideByName)(options.0, c"batch".as_ptr(), 2)).unwrap();
        // A name that the model does not have is no error.
        check((api().AddFreeDimensionOverrideByName)(options.0, c"depth".as_ptr(), 9)).unwrap();
    }
    let session = env.open(&small("linear"), Some(&options)).unwrap();
    let two = Value::floats(&[2, 4], &[1.0; 8]);
    assert_eq!(session.run(&[("x", &two)], &["y"]).unwrap()[0].shape(), [2, 3]);
    let three = Value::floats(&[3, 4], &[1.0; 12]);
    assert!(session.run(&[("x", &three)], &["y"]).is_err());
}

#[test]
fn initializers_from_outside() {
    let env = Env::new();
    let options = Options::new();
    let weight: Vec<f32> = (0..12).map(|n| n as f32).collect();
    let (weight, bias) = (Value::floats(&[4, 3], &weight), Value::floats(&[3], &[100.0; 3]));
    // SAFETY: as above; the values outlive the session.
    unsafe {
        check((api().AddInitializer)(options.0, c"w".as_ptr(), weight.0)).unwrap();
        let (names, values) = ([c"b".as_ptr()], [bias.0.cast_const()]);
        check((api().AddExternalInitializers)(options.0, names.as_ptr(), values.as_ptr(), 1)).unwrap();
        assert!(check((api().AddInitializer)(options.0, c"w".as_ptr(), null_mut())).is_err());
    }
    let session = env.open(&small("linear"), Some(&options)).unwrap();
    let x = Value::floats(&[1, 4], &[1.0; 4]);
    assert_eq!(session.run(&[("x", &x)], &["y"]).unwrap()[0].to_vec::<f32>(), [118.0, 122.0, 126.0]);
    drop(session);
    // A name that the model does not have, and another shape.
    for (name, value) in [(c"none", &bias), (c"b", &weight)] {
        let options = Options::new();
        // SAFETY: as above.
        unsafe { check((api().AddInitializer)(options.0, name.as_ptr(), value.0)).unwrap() };
        assert!(env.open(&small("linear"), Some(&options)).is_err(), "{name:?}");
    }
}

#[test]
fn providers_by_name() {
    let options = Options::new();
    for (name, given, part) in [
        ("TensorRT", &[][..], "TensorRT"),
        ("ROCM", &[("migraphx_int8_enable", "1")], "migraphx_int8_enable"),
    ] {
        let (_, message) = options.provider(name, given).err().unwrap();
        assert!(message.contains(part), "{message}");
    }
    options.provider("CPUExecutionProvider", &[("use_arena", "1")]).unwrap();
    options.provider("CPU", &[]).unwrap();
    let env = Env::new();
    assert!(env.open(&small("linear"), Some(&options)).is_ok());
    // A wrong option of the GPU's provider is told when the session is made, by its name.
    for (name, given, part) in [
        ("ROCM", ("no_such_option", "1"), "no_such_option"),
        ("MIGraphX", ("migraphx_save_compiled_model", "1"), "needs \"migraphx_save_model_path\""),
    ] {
        let options = Options::new();
        options.provider(name, &[given]).unwrap();
        let (_, message) = env.open(&small("linear"), Some(&options)).err().unwrap();
        assert!(message.contains(part), "{message}");
    }
}

/// The options of providers about compiled models.
#[test]
fn compiled_models_are_kept() {
    if !gpu() {
        // A provider that has no device is skipped with its options.
        return;
    }
    let env = Env::new();
    let x = Value::floats(&[1, 4], &[1.0; 4]);
    let folder = std::env::temp_dir().join(format!("rukh-onnxruntime-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (cache, file) = (folder.to_str().unwrap(), folder.join("kept.rukh"));
    let file = file.to_str().unwrap();
    let another = folder.join("another.rukh");
    let another = another.to_str().unwrap();
    let none = folder.join("none");
    let answer_of = |provider: &str, given: &[(&str, &str)]| {
        let options = Options::new();
        options.provider(provider, given).unwrap();
        let session = env.open(&small("linear"), Some(&options))?;
        let outputs = session.run(&[("x", &x)], &["y"])?;
        Ok::<_, (OrtErrorCode, String)>(outputs[0].to_vec::<f32>())
    };
    let answer = |given: &[(&str, &str)]| answer_of("MIGraphX", given);
    let expected = answer(&[]).unwrap();
    let load = [("migraphx_load_compiled_model", "1"), ("migraphx_load_model_path", file)];
    let (_, message) = answer(&load).unwrap_err();
    assert!(message.contains(file), "{message}");
    let artifacts = || {
        let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|it| it == "rukh")).count()
    };
    let save = [("migraphx_save_compiled_model", "1"), ("migraphx_save_model_path", file)];
    for (given, count) in [
        (&save[..], 1),
        (&load, 1),
        (&[("compiled_model_path", another)], 2),
        (&[("migraphx_model_cache_dir", cache)], 3),
        (&[("cache_dir", cache)], 3),
        (&[("model_cache_dir", cache), ("model_cache_limit", "0")], 3),
        (&[("cache_dir", none.to_str().unwrap()), ("disable_caching", "True")], 3),
    ] {
        for provider in ["MIGraphX", "ROCM", "AMDGPU"] {
            assert_eq!(answer_of(provider, given).unwrap(), expected, "{provider} {given:?}");
            assert_eq!(artifacts(), count, "{provider} {given:?}");
        }
    }
    assert!(!none.exists());
    let (_, message) = answer(&[("model_cache_limit", "much")]).unwrap_err();
    assert!(message.contains("model_cache_limit"), "{message}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// No other names than ONNX Runtime of that version has, or its package for Java does not start.
#[test]
fn providers_that_are_there() {
    let cpu = "CPUExecutionProvider";
    let (with_rocm, without) = if gpu() {
        (
            vec!["MIGraphXExecutionProvider", "ROCMExecutionProvider", cpu],
            vec!["MIGraphXExecutionProvider", cpu],
        )
    } else {
        (vec![cpu], vec![cpu])
    };
    for (version, want) in
        [(16, &with_rocm), (17, &with_rocm), (22, &with_rocm), (23, &without), (31, &without)]
    {
        let (mut names, mut count) = (null_mut(), 0);
        let table = api_of(version).unwrap();
        // SAFETY: as above.
        let found: Vec<String> = unsafe {
            check((table.GetAvailableProviders)(&mut names, &mut count)).unwrap();
            let found = (0..count as usize)
                .map(|index| CStr::from_ptr(*names.add(index)).to_str().unwrap().to_owned());
            let found = found.collect();
            check((table.ReleaseAvailableProviders)(names, count)).unwrap();
            found
        };
        assert_eq!(&found, want, "version {version}");
    }
}

/// The layouts of the struct in the header of each version, as bytes: device 0 and fp16 on, or a compiled model saved.
#[test]
fn structs_of_migraphx_by_version() {
    let env = Env::new();
    // Offsets in bytes of migraphx_int8_enable and migraphx_save_compiled_model, from the headers.
    for (version, int8, save) in [
        (16, 8, None),
        (17, 8, None),
        (18, 8, None),
        (19, 8, Some(24)),
        (20, 8, Some(24)),
        (22, 8, Some(24)),
        (23, 12, Some(32)),
        (31, 12, Some(32)),
    ] {
        let table = api_of(version).unwrap();
        let append = |marked: Option<usize>| {
            let mut bytes = [0_u64; 16];
            if let Some(offset) = marked {
                // SAFETY: within the array.
                unsafe { bytes.as_mut_ptr().byte_add(offset).cast::<i32>().write(1) };
            }
            let options = Options::new();
            // SAFETY: the array is at least as long as the struct of any version.
            let appended = check(unsafe {
                (table.SessionOptionsAppendExecutionProvider_MIGraphX)(options.0, bytes.as_ptr().cast())
            });
            appended.map(|()| options)
        };
        append(None).unwrap();
        let (_, message) = append(Some(int8)).err().unwrap_or_else(|| panic!("version {version}: int8"));
        assert!(message.contains("migraphx_int8_enable"), "version {version}: {message}");
        match save {
            Some(offset) => {
                let options = append(Some(offset)).unwrap();
                let (_, message) = env.open(&small("linear"), Some(&options)).err().unwrap();
                assert!(message.contains("migraphx_save_model_path"), "version {version}: {message}");
            }
            // What lies behind the struct of an old program is not read.
            None => {
                assert!((24..64).step_by(4).all(|offset| append(Some(offset)).is_ok()), "version {version}")
            }
        }
    }
}

#[test]
fn options_of_rocm_and_cuda() {
    // SAFETY: as above.
    unsafe {
        let rocm = get(|out| (api().CreateROCMProviderOptions)(out)).unwrap();
        let cuda = get(|out| (api().CreateCUDAProviderOptions)(out)).unwrap();
        let keys = [c"device_id".as_ptr(), c"gpu_mem_limit".as_ptr(), c"arena_extend_strategy".as_ptr()];
        let values = [c"0".as_ptr(), c"1048576".as_ptr(), c"kSameAsRequested".as_ptr()];
        check((api().UpdateROCMProviderOptions)(rocm, keys.as_ptr(), values.as_ptr(), 3)).unwrap();
        check((api().UpdateCUDAProviderOptions)(cuda, keys.as_ptr(), values.as_ptr(), 3)).unwrap();
        let wrong = [c"no_such_option".as_ptr()];
        assert!(check((api().UpdateROCMProviderOptions)(rocm, wrong.as_ptr(), values.as_ptr(), 1)).is_err());
        let text =
            owned(|allocator, out| (api().GetCUDAProviderOptionsAsString)(cuda, allocator, out)).unwrap();
        assert_eq!(text, "device_id=0;gpu_mem_limit=1048576;arena_extend_strategy=kSameAsRequested");
        let text =
            owned(|allocator, out| (api().GetROCMProviderOptionsAsString)(rocm, allocator, out)).unwrap();
        assert!(text.contains("gpu_mem_limit=1048576;arena_extend_strategy=1"), "{text}");
        for append in [0, 1] {
            let options = Options::new();
            check(match append {
                0 => (api().SessionOptionsAppendExecutionProvider_ROCM)(options.0, rocm),
                _ => (api().SessionOptionsAppendExecutionProvider_CUDA_V2)(options.0, cuda),
            })
            .unwrap();
            let env = Env::new();
            let opened = env.open(&small("linear"), Some(&options));
            assert_eq!(opened.as_ref().err().map(|(code, _)| *code), (!gpu()).then_some(ORT_EP_FAIL));
        }
        (api().ReleaseROCMProviderOptions)(rocm);
        (api().ReleaseCUDAProviderOptions)(cuda);
    }
}

#[test]
fn where_nodes_run() {
    let env = Env::new();
    let options = Options::new();
    if gpu() {
        options.provider("ROCM", &[]).unwrap();
        options.entry("session.disable_cpu_ep_fallback", "1").unwrap();
    }
    let session = env.open(&small("linear"), Some(&options)).unwrap();
    // SAFETY: as above.
    unsafe {
        let (mut subgraphs, mut count) = (std::ptr::null(), 0);
        check((api().Session_GetEpGraphAssignmentInfo)(session.0, &mut subgraphs, &mut count)).unwrap();
        assert_eq!(count, 1);
        let name = get(|out| (api().EpAssignedSubgraph_GetEpName)(*subgraphs, out)).unwrap();
        let expected = if gpu() { c"ROCMExecutionProvider" } else { c"CPUExecutionProvider" };
        assert_eq!(CStr::from_ptr(name), expected);
        let (mut nodes, mut nodes_count) = (std::ptr::null(), 0);
        check((api().EpAssignedSubgraph_GetNodes)(*subgraphs, &mut nodes, &mut nodes_count)).unwrap();
        assert!(nodes_count > 0);
        let operator = get(|out| (api().EpAssignedNode_GetOperatorType)(*nodes, out)).unwrap();
        assert!(!CStr::from_ptr(operator).is_empty());
    }
}
