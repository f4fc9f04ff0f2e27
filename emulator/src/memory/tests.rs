use super::*;

fn small() -> Memory {
    let settings = Settings { limit: 1 << 20, poison: true, address_space: 1 << 32, ..Settings::default() };
    Memory::new(settings).expect("address space")
}

/// The bytes of an allocation.
fn bytes(memory: &Memory, address: u64) -> Vec<u8> {
    let range = memory.find(address).expect("a live allocation");
    // SAFETY: a live allocation of this test.
    unsafe { std::slice::from_raw_parts(range.host, (range.end - range.start) as usize) }.to_vec()
}

#[test]
fn addresses_of_the_device_are_not_the_hosts() {
    let memory = small();
    let address = memory.allocate(100, Kind::Device).unwrap();
    let range = memory.find(address + 99).unwrap();
    assert_eq!((range.start, range.end), (address, address + 100));
    assert_ne!(range.host as u64, address);
    assert_eq!(bytes(&memory, address), vec![0xff; 100]);
    assert!(memory.is_device_address(address));
}

#[test]
fn what_is_said_about_an_address() {
    let memory = small();
    let freed = memory.allocate(64, Kind::Device).unwrap();
    memory.free(freed, &[Kind::Device]).unwrap();
    let live = memory.allocate(256, Kind::Device).unwrap();
    let reserved = memory.reserve_for_graph(64).unwrap();
    let local = 0_u8;
    for (address, text) in [
        (0, "a null pointer".to_owned()),
        (16, "16 bytes behind a null pointer".to_owned()),
        (live + 268, format!("12 bytes behind the allocation of 256 bytes at {live:#x}")),
        (live - 4, format!("4 bytes before the allocation of 256 bytes at {live:#x}")),
        (freed + 8, format!("in an allocation that was freed: byte 8 of 64 at {freed:#x}")),
        (reserved, format!("in memory of a graph that is not allocated now: byte 0 of 64 at {reserved:#x}")),
        (&raw const local as u64, "no device memory: a host pointer or a wrong address".to_owned()),
    ] {
        assert_eq!(memory.find(address).map(|_| ()), Err(text), "{address:#x}");
    }
}

#[test]
fn a_limit_holds_for_what_the_program_allocates() {
    let memory = small();
    let half = memory.allocate(512 << 10, Kind::Device).unwrap();
    assert!(matches!(memory.allocate(600 << 10, Kind::Device), Err(Error::OutOfMemory(_))));
    memory.allocate(600 << 10, Kind::Code).unwrap();
    assert!(matches!(memory.allocate(u64::MAX - 8, Kind::Code), Err(Error::OutOfMemory(_))));
    memory.free(half, &[Kind::Device]).unwrap();
    assert_eq!(memory.usage(), (0, 1 << 20));
    memory.allocate(600 << 10, Kind::Device).unwrap();
}

#[test]
fn only_what_is_there_can_be_freed() {
    let memory = small();
    let device = memory.allocate(64, Kind::Device).unwrap();
    let host = memory.allocate_host(64, Kind::Host, 0).unwrap();
    let mut own = [0_u8; 64];
    let registered = own.as_mut_ptr() as u64;
    memory.register(registered, 64, 0).unwrap();
    assert!(matches!(memory.register(registered + 8, 8, 0), Err(Error::AlreadyRegistered(_))));
    assert!(matches!(memory.register(device, 8, 0), Err(Error::Invalid(_))));
    for (address, kinds) in [
        (device + 8, &[Kind::Device][..]),
        (device, &[Kind::Host]),
        (host, &[Kind::Device]),
        (0x1234, &[Kind::Device]),
    ] {
        assert!(matches!(memory.free(address, kinds), Err(Error::Invalid(_))), "{address:#x}");
    }
    assert_eq!(memory.live().len(), 3);
    memory.free(device, &[Kind::Device]).unwrap();
    assert!(memory.free(device, &[Kind::Device]).is_err(), "freed twice");
    memory.free(host, &[Kind::Host]).unwrap();
    memory.free(registered, &[Kind::Registered]).unwrap();
    assert!(memory.live().is_empty());
}

#[test]
fn a_launch_replaces_the_one_before() {
    let memory = small();
    let (first, _) = memory.place_launch(&[1; 24], |_| [7; 64]).unwrap();
    let (second, packet) = memory.place_launch(&[2; 8], |at| [at as u8; 64]).unwrap();
    assert_eq!(first, second);
    assert_eq!(bytes(&memory, second), vec![2; 8]);
    assert_eq!(bytes(&memory, packet), vec![second as u8; 64]);
    assert!(memory.find(second + 8).is_err());
    assert!(memory.place_launch(&vec![0; 1 << 20], |_| [0; 64]).is_err());
}

#[test]
fn addresses_are_used_again_when_all_were_given() {
    let settings = Settings { limit: 1 << 25, poison: false, address_space: 1 << 26, ..Settings::default() };
    let memory = Memory::new(settings).expect("address space");
    let kept = memory.allocate(1 << 20, Kind::Device).unwrap();
    for _ in 0..100 {
        let address = memory.allocate(1 << 24, Kind::Device).unwrap();
        assert!(address > kept + (1 << 20) || address + (1 << 24) < kept);
        memory.free(address, &[Kind::Device]).unwrap();
    }
    assert!(memory.find(kept).is_ok());
}

#[test]
fn not_all_freed_memory_is_remembered() {
    let memory = small();
    let first = memory.allocate(16, Kind::Device).unwrap();
    memory.free(first, &[Kind::Device]).unwrap();
    for _ in 0..1 << 16 {
        let address = memory.allocate(16, Kind::Device).unwrap();
        memory.free(address, &[Kind::Device]).unwrap();
    }
    assert!(memory.lookup(first).is_none());
    assert!(memory.free(first, &[Kind::Device]).is_err());
}

#[test]
fn bytes_that_nobody_wrote() {
    let settings = Settings { address_space: 1 << 30, track_undefined: true, ..Settings::default() };
    let memory = Memory::new(settings).unwrap();
    let (a, b) = (memory.allocate(100, Kind::Device).unwrap(), memory.allocate(100, Kind::Device).unwrap());
    let undefined = |start: u64| (0..100).filter(|i| memory.is_undefined(start + i)).count();
    assert_eq!((undefined(a), undefined(b)), (100, 100));
    memory.define(a + 3, 14);
    assert_eq!(undefined(a), 86);
    assert!(memory.is_undefined(a + 2) && !memory.is_undefined(a + 3));
    assert!(!memory.is_undefined(a + 16) && memory.is_undefined(a + 17));
    memory.copy_definedness(b + 1, a, 20);
    assert_eq!(undefined(b), 86);
    memory.copy_definedness(a, 0x1000, 50);
    assert_eq!(undefined(a), 50);
    memory.free(b, &[Kind::Device]).unwrap();
    assert_eq!(undefined(b), 0);
    assert!(
        !Memory::new(Settings { address_space: 1 << 30, ..Settings::default() }).unwrap().tracks_undefined()
    );
}
