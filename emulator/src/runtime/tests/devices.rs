use super::super::contexts::*;
use super::super::devices::*;
use super::super::pointers::*;
use super::super::properties::*;
use super::*;
use crate::isa::Target;
use crate::runtime::host_memory::*;

fn text(bytes: &[u8]) -> &str {
    let end = bytes.iter().position(|it| *it == 0).unwrap_or(bytes.len());
    std::str::from_utf8(&bytes[..end]).expect("text")
}

fn number(bytes: &[u8], at: usize) -> i32 {
    i32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

#[test]
fn properties_of_each_target() {
    for target in Target::all() {
        start(|options| (options.target, options.devices) = (target, 2));
        let new = get(|out| hipGetDevicePropertiesR0600(out, 1)).unwrap();
        let old = get(|out| hipGetDevicePropertiesR0000(out, 1)).unwrap();
        assert_eq!(get(|out| hipGetDeviceProperties(out, 1)), Ok(old));
        assert_eq!(text(&new[1160..]), text(&old[396..]));
        assert!(text(&new[1160..]).starts_with(target.name));
        assert_eq!((number(&new, 308), number(&old, 276)), (target.wave as i32, target.wave as i32));
        assert_eq!(get(|out| hipDeviceGetAttribute(out, 87, 1)), Ok(target.wave as i32));
        assert_eq!((number(&new, 584), number(&old, 368)), (4, 4), "the bus of the second device");
        let major = get(|out| hipDeviceGetAttribute(out, 23, 0)).unwrap();
        assert_eq!(number(&new, 360), major);
        assert!(target.name[3..].starts_with(&major.to_string()), "{}", target.name);
    }
}

#[test]
fn names_have_their_features() {
    for (name, full) in
        [("gfx90a", "gfx90a:sramecc+:xnack-"), ("gfx1100", "gfx1100"), ("gfx900", "gfx900:xnack-")]
    {
        start(|options| options.target = Target::find(name).unwrap());
        let properties = get(|out| hipGetDevicePropertiesR0600(out, 0)).unwrap();
        assert_eq!(text(&properties[1160..1416]), full);
    }
}

#[test]
fn versions_are_those_of_the_major_number() {
    for (major, least) in [(5, 50_000_000), (6, 60_000_000), (7, 70_000_000)] {
        start(|options| options.hip_major = major);
        let version = get(|out| hipRuntimeGetVersion(out)).unwrap();
        assert!((least..least + 10_000_000).contains(&version), "{version}");
        assert_eq!(get(|out| hipDriverGetVersion(out)), Ok(version));
    }
}

#[test]
fn the_current_device_is_the_threads() {
    let runtime = start(|options| options.devices = 3);
    assert_eq!(get(|out| hipGetDeviceCount(out)), Ok(3));
    ok(hipSetDevice(2));
    assert_eq!(get(|out| hipGetDevice(out)), Ok(2));
    assert_eq!(in_other_thread(runtime, || get(|out| hipGetDevice(out))), Ok(0));
    let context = get(|out| hipCtxCreate(out, 0, 1)).unwrap();
    assert_eq!(get(|out| hipCtxGetDevice(out)), Ok(1));
    ok(hipSetDevice(0));
    ok(hipCtxSetCurrent(context));
    assert_eq!(get(|out| hipGetDevice(out)), Ok(1));
    assert_eq!(get(|out| hipCtxGetCurrent(out)), Ok(context));
    ok(hipCtxDestroy(context));
    let mut name = [1; 8];
    // SAFETY: the name has that room.
    ok(unsafe { hipDeviceGetName(name.as_mut_ptr(), 8, 0) });
    assert_eq!(name[7], 0, "a name that is cut off ends");
}

#[test]
fn types_of_memory_follow_the_version() {
    for (major, device_type, host_type, managed_type) in [(5, 1, 0, 3), (6, 2, 1, 3), (7, 2, 1, 3)] {
        start(|options| options.hip_major = major);
        let device = buffer(&[1, 2]);
        let host = get(|out| hipHostMalloc(out, 8, 0)).unwrap();
        let managed = get(|out| hipMallocManaged(out, 8, 1)).unwrap();
        let kind = |address| get(|out| hipPointerGetAttributes(out, address)).map(|it| it.memory_type);
        assert_eq!(
            (kind(device + 4), kind(host), kind(managed)),
            (Ok(device_type), Ok(host_type), Ok(managed_type))
        );
        let own = 0_u32;
        let own = &raw const own as Address;
        let plain = kind(own);
        assert_eq!(plain, if major >= 6 { Ok(0) } else { Err(HipError::INVALID_VALUE) });
        assert_eq!(kind(device + 8), Err(HipError::INVALID_VALUE));
        ok(hipHostRegister(own, 4, 0));
        assert_eq!(kind(own), Ok(host_type));
        assert_eq!(get(|out| hipHostGetDevicePointer(out, own, 0)), Ok(own));
        ok(hipHostUnregister(own));
        ok(hipHostFree(host));
    }
}

#[test]
fn the_limit_of_memory_is_reported_and_kept() {
    start(|_| ());
    let used = || {
        let mut total = MaybeUninit::<usize>::uninit();
        let free = get(|out| hipMemGetInfo(out, Some(&mut total))).unwrap();
        // SAFETY: the call succeeded.
        let total = unsafe { total.assume_init() };
        total - free
    };
    assert_eq!(used(), 0);
    let address = get(|out| hipMalloc(out, 1000)).unwrap();
    assert_eq!(used(), 1000);
    assert_eq!(get(|out| hipMalloc(out, 1 << 30)), Err(HipError::OUT_OF_MEMORY));
    ok(crate::runtime::memory::hipFree(address));
    assert_eq!(used(), 0);
    assert_eq!(get(|out| hipMalloc(out, 0)), Ok(0));
}
