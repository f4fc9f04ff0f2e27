use super::super::{CodeObject, Error, select, size_in_memory};
use super::{SOURCE, compile, compile_source};
use crate::isa::Target;

/// Everything that is done with bytes of unknown origin. Errors are fine.
fn load(bytes: &[u8]) -> Result<(), Error> {
    let chosen = select(bytes, Target::find("gfx1100").expect("a known target"))?;
    let object = CodeObject::parse(chosen)?;
    object.image(0x2000_0000_0000)?;
    Ok(())
}

fn read_from(bytes: &[u8]) -> impl Fn(u64, u64) -> Result<Vec<u8>, Error> {
    move |offset, size| {
        let end = offset.checked_add(size).filter(|end| *end <= bytes.len() as u64);
        let end = end.ok_or_else(|| Error::Invalid("behind the end".to_owned()))?;
        Ok(bytes[offset as usize..end as usize].to_vec())
    }
}

#[test]
fn no_truncated_file_panics() {
    let Some(bytes) = compile("gfx1100") else { return };
    load(&bytes).expect("the whole file");
    let mut errors = 0;
    for length in 0..bytes.len() {
        errors += usize::from(load(&bytes[..length]).is_err());
        let _ = size_in_memory(&read_from(&bytes[..length]));
    }
    assert!(errors > bytes.len() / 2, "{errors} of {} cuts are errors", bytes.len());
}

#[test]
fn no_flipped_byte_panics() {
    let object = compile("gfx1100");
    let bundle = compile_source(SOURCE, &["gfx1100", "gfx90a"]);
    let (Some(object), Some(bundle)) = (object, bundle) else { return };
    for (bytes, length) in [(&object, object.len()), (&bundle, 512)] {
        let mut damaged = bytes.clone();
        for at in 0..length {
            for mask in [0x01, 0x80, 0xff] {
                damaged[at] ^= mask;
                let _ = load(&damaged);
                let _ = size_in_memory(&read_from(&damaged));
                damaged[at] = bytes[at];
            }
        }
    }
}

#[test]
fn what_is_no_code_object() {
    let mut bundle = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    bundle.extend(u64::MAX.to_le_bytes());
    let mut host = b"\x7fELF\x02\x01\x01".to_vec();
    host.resize(64, 0);
    (host[16], host[18]) = (3, 62);
    for (bytes, text) in [
        (&b""[..], "neither an ELF file nor an offload bundle"),
        (b"hello", "neither an ELF file nor an offload bundle"),
        (b"\x7fELF", "header cannot be read"),
        (b"CCOB\x02\0", "--no-offload-compress"),
        (b"__CLANG_OFFLOAD_BUNDLE__\x01", "cut off"),
        (&bundle, "18446744073709551615 entries"),
        (&host, "machine 62"),
    ] {
        let error = load(bytes).expect_err(text);
        assert!(format!("{error:?}").contains(text), "{error:?}");
    }
}

#[test]
fn the_size_of_a_file_in_memory_is_in_its_headers() {
    let Some(object) = compile("gfx1100") else { return };
    let Some(bundle) = compile_source(SOURCE, &["gfx1100", "gfx90a"]) else { return };
    for bytes in [object, bundle] {
        let mut longer = bytes.clone();
        longer.extend([0; 100]);
        assert_eq!(size_in_memory(&read_from(&longer)), Ok(bytes.len() as u64));
    }
}
