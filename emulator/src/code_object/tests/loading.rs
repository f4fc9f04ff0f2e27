use super::super::{CodeObject, Error, select};
use super::{SOURCE, compile, compile_source};
use crate::isa::Target;

#[test]
fn what_a_code_object_says() {
    for (target, wave32) in [("gfx90a", false), ("gfx1030", true), ("gfx1100", true), ("gfx1201", true)] {
        let Some(bytes) = compile(target) else { return };
        let object = CodeObject::parse(&bytes).expect(target);
        assert_eq!(object.processor.name, target);
        let [kernel] = &object.kernels[..] else { panic!("{} kernels", object.kernels.len()) };
        assert_eq!(kernel.name, "scale");
        let explicit: Vec<_> = kernel.arguments.iter().filter(|it| !it.is_hidden()).collect();
        let places: Vec<_> = explicit.iter().map(|it| (it.offset, it.size, it.kind.as_str())).collect();
        assert_eq!(places, [(0, 8, "global_buffer"), (8, 4, "by_value"), (12, 4, "by_value")]);
        assert_eq!(kernel.descriptor.is_wave32(), wave32, "{target}");
        assert_eq!(kernel.max_workgroup_size, 256);
        assert_eq!(kernel.kernarg_size, kernel.descriptor.kernarg_size);
        let (start, end) = object.code().expect("code");
        assert!((start..end).contains(&kernel.entry));
        assert_eq!(object.globals["counter"].size, 4);
    }
}

#[test]
fn relocations_follow_the_base() {
    let Some(bytes) = compile("gfx1100") else { return };
    let object = CodeObject::parse(&bytes).unwrap();
    let base = 0x2000_1234_0000;
    let image = object.image(base).unwrap();
    let at = object.globals["pointer"].address as usize;
    let value = u64::from_le_bytes(image[at..at + 8].try_into().unwrap());
    assert_eq!(value, base + object.globals["counter"].address);
}

#[test]
fn a_bundle_has_one_for_each_device() {
    let Some(bytes) = compile_source(SOURCE, &["gfx90a:xnack-", "gfx1100", "gfx11-generic"]) else { return };
    for (device, found) in [("gfx90a", "gfx90a"), ("gfx1100", "gfx1100"), ("gfx1102", "gfx11-generic")] {
        let target = Target::find(device).unwrap();
        let object = CodeObject::parse(select(&bytes, target).expect(device)).expect(device);
        assert_eq!(object.processor.name, found);
        object.processor.check(object.features, target).expect(device);
    }
    let error = select(&bytes, Target::find("gfx1201").unwrap()).unwrap_err();
    assert!(matches!(&error, Error::OtherTarget(text) if text.contains("gfx90a:xnack-")), "{error:?}");
}

#[test]
fn a_code_object_for_another_device_is_refused() {
    for (made_for, device, fits) in [
        ("gfx1100", "gfx1100", true),
        ("gfx1100", "gfx1101", false),
        ("gfx90a", "gfx90a", true),
        ("gfx90a:xnack+", "gfx90a", false),
        ("gfx90a:sramecc-", "gfx90a", false),
    ] {
        let Some(bytes) = compile(made_for) else { return };
        let object = CodeObject::parse(&bytes).unwrap();
        let checked = object.processor.check(object.features, Target::find(device).unwrap());
        assert_eq!(checked.is_ok(), fits, "{made_for} on {device}: {checked:?}");
    }
}
