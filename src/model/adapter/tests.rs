use bytes::Bytes;

use super::*;
use crate::tensor::Shape;

/// A file that ONNX Runtime 1.31.1 wrote: "w", float[2, 1] of 1.5 and -2, and "scale", an int64 of 258.
const OF_ONNX_RUNTIME: &str = "\
    08000000544f5254b0ffffff0100000003000000f9ffffff04000000020000004400000004000000d0ffffff20000000\
    18000000070000000400000008000000020100000000000000000000050000007363616c650000000c00140004000800\
    0c0010000c00000030000000180000000100000004000000080000000000c03f000000c0020000000200000000000000\
    01000000000000000100000077000000";

fn hex(text: &str) -> Bytes {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

fn bytes_of(adapter: &Adapter) -> Bytes {
    let mut bytes = Vec::new();
    write::Layout::of(adapter).unwrap().write(&mut bytes).unwrap();
    bytes.into()
}

/// One parameter of each type and of some shapes; elements count up.
fn of_all_types() -> Adapter {
    let shapes: [&[usize]; 5] = [&[], &[3], &[2, 0, 5], &[2, 3], &[1, 1, 7]];
    let types = (1..=20).filter_map(ElementType::from_onnx).filter(|ty| is_allowed(*ty));
    let parameters = types.enumerate().map(|(i, ty)| {
        let shape = shapes[i % shapes.len()];
        let bytes: Vec<u8> = (0..shape.iter().product::<usize>() * ty.size()).map(|n| n as u8 + 1).collect();
        let buffer = crate::tensor::Buffer::copy_of(&bytes).unwrap();
        (format!("layer.{i}/größe"), Tensor::from_buffer(ty, shape, buffer).unwrap())
    });
    Adapter::of(Versions { adapter: i32::MIN, model: i32::MAX }, parameters.collect()).unwrap()
}

fn same(one: &Adapter, other: &Adapter) -> bool {
    let facts = |adapter: &Adapter| -> Vec<(Arc<str>, ElementType, Shape, Vec<u8>)> {
        let fact = |p: &Parameter| {
            let bytes = p.tensor.buffer().unwrap().bytes().to_vec();
            (p.name.clone(), p.tensor.ty(), p.tensor.shape().into(), bytes)
        };
        adapter.parameters().iter().map(fact).collect()
    };
    one.versions() == other.versions() && facts(one) == facts(other)
}

#[test]
fn what_is_written_is_read_again() {
    let adapter = of_all_types();
    assert_eq!(adapter.parameters().len(), 19);
    let bytes = bytes_of(&adapter);
    let read = Adapter::from_bytes(&bytes).unwrap();
    assert!(same(&adapter, &read));
    assert_eq!(read.find("layer.18/größe"), Some(18));
    assert_eq!(read.find("layer"), None);
    let none = Adapter::of(Versions::default(), Vec::new()).unwrap();
    assert!(same(&none, &Adapter::from_bytes(&bytes_of(&none)).unwrap()));
}

/// Elements are used where they lie, so that a mapped file is not copied.
#[test]
fn elements_stay_in_the_file() {
    let folder = std::env::temp_dir().join(format!("rukh-adapter-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("a.onnx_adapter");
    let adapter = of_all_types();
    adapter.save(&path).unwrap();
    let read = Adapter::open(&path).unwrap();
    assert!(same(&adapter, &read));
    assert!(read.label().contains("a.onnx_adapter"), "{}", read.label());
    let address = |p: &Parameter| p.tensor.buffer().unwrap().as_ptr().addr();
    let first = read.parameters().iter().map(address).min().unwrap();
    let length = std::fs::metadata(&path).unwrap().len() as usize;
    for parameter in read.parameters() {
        assert!(address(parameter) - first < length, "{} was copied", parameter.name);
        assert!(address(parameter).is_multiple_of(64), "{} does not begin at a line", parameter.name);
    }
    // Saved over itself, it is read from the file as it was.
    read.save(&path).unwrap();
    assert!(same(&read, &Adapter::open(&path).unwrap()));
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["a.onnx_adapter"]);
    let missing = folder.join("there/b.onnx_adapter");
    assert_eq!(adapter.save(&missing).unwrap_err().status, Status::Io);
    assert_eq!(Adapter::open(&missing).unwrap_err().status, Status::NotFound);
    assert_eq!(Adapter::open(&folder).unwrap_err().status, Status::Io);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_file_of_onnx_runtime_is_read() {
    let read = Adapter::from_bytes(&hex(OF_ONNX_RUNTIME)).unwrap();
    assert_eq!(read.versions(), Versions { adapter: 3, model: -7 });
    let w = read.tensor("w").unwrap();
    assert_eq!((w.ty(), w.shape()), (ElementType::F32, &[2, 1][..]));
    assert_eq!(w.view().slice::<f32>(), [1.5, -2.0]);
    let scale = read.tensor("scale").unwrap();
    assert_eq!((scale.ty(), scale.shape(), scale.to_ints().unwrap()), (ElementType::I64, &[][..], vec![258]));
    assert_eq!(read.parameters().len(), 2);
}

/// A file cut short is an error, and so are bytes behind which nothing is; whatever begins at any address is read.
#[test]
fn every_truncation_is_an_error() {
    for bytes in [bytes_of(&of_all_types()), hex(OF_ONNX_RUNTIME)] {
        let whole = Adapter::from_bytes(&bytes).unwrap();
        for length in 0..bytes.len() {
            match Adapter::from_bytes(&bytes.slice(..length)) {
                Err(e) => {
                    assert_eq!(e.status, Status::InvalidModel, "{e}");
                    assert!(e.message.starts_with("the adapter in memory: "), "{e}");
                }
                // ONNX Runtime's file ends with the NUL behind a name and padding, which nobody reads.
                Ok(read) => assert!(same(&whole, &read) && bytes.len() - length <= 4, "{length}"),
            }
        }
        let shifted = Bytes::from([&[0; 3], &bytes[..]].concat()).slice(3..);
        assert!(same(&whole, &Adapter::from_bytes(&shifted).unwrap()));
    }
}

/// A byte that was changed gives an error or other tensors, all within the file.
#[test]
fn every_byte_may_be_anything() {
    for bytes in [bytes_of(&of_all_types()), hex(OF_ONNX_RUNTIME)] {
        let (mut refused, mut read) = (0, 0);
        for at in 0..bytes.len() {
            for value in [0, 1, 4, 0x7F, 0x80, 0xFF, bytes[at] ^ 1, bytes[at].wrapping_add(8)] {
                let mut changed = bytes.to_vec();
                changed[at] = value;
                match Adapter::from_bytes(&changed.into()) {
                    Err(e) => {
                        refused += 1;
                        assert!(matches!(e.status, Status::InvalidModel | Status::Unsupported), "{at}: {e}");
                    }
                    Ok(adapter) => {
                        read += 1;
                        let size = |p: &Parameter| p.name.len() + p.tensor.buffer().unwrap().bytes().len();
                        let total: usize = adapter.parameters().iter().map(size).sum();
                        assert!(total <= bytes.len(), "{at}: {total}");
                    }
                }
            }
        }
        assert!(refused > 100 && read > 100, "{refused} refused, {read} read");
    }
}

/// What is wrong, and the part that the message names. Places in the file are those of `write.rs`.
#[test]
fn a_message_names_the_part() {
    let tensor = || Tensor::from_slice(&[2], &[1f32, 2.0]).unwrap();
    let adapter =
        Adapter::of(Versions::default(), vec![("a".into(), tensor()), ("b".into(), tensor())]).unwrap();
    let bytes = bytes_of(&adapter);
    // The list of tables is at 52, the tables at 64 and 84, the names at 104 and 128.
    let huge = &[0xFF, 0xFF, 0xFF, 0x7F][..];
    let table: &[(usize, &[u8], Status, &str)] = &[
        (0, huge, Status::InvalidModel, "the adapter: 4 bytes from byte 2147483647 on are needed"),
        (4, b"ORTM", Status::InvalidModel, "those of this one are \"ORTM\""),
        (8, &[3, 0], Status::InvalidModel, "the adapter: the list of its fields has 3 bytes"),
        (8, &[0, 0], Status::InvalidModel, "the list of its fields has 0 bytes"),
        (
            12,
            &[2, 0],
            Status::InvalidModel,
            "format_version: it is said to be at byte 2 of a table of 20 bytes",
        ),
        (32, &[0xFF; 4], Status::InvalidModel, "the list of its fields has 65535 bytes"),
        (
            32,
            huge,
            Status::InvalidModel,
            "the adapter: the list of its fields is said to begin before the first byte",
        ),
        (36, &[2, 0, 0, 0], Status::Unsupported, "its format has version 2; the library reads version 1"),
        (52, huge, Status::InvalidModel, "parameters: 8589934588 bytes from byte 56 on"),
        (56, &[28, 0, 0, 0], Status::InvalidModel, "parameter \"b\" is there twice"),
        (60, huge, Status::InvalidModel, "parameter 1: "),
        (
            64,
            &[0xFF, 0xFF, 0xFF, 0x7F],
            Status::InvalidModel,
            "parameter 0: the list of its fields is said to begin",
        ),
        (68, huge, Status::InvalidModel, "parameter 0: its name: "),
        (72, huge, Status::InvalidModel, "parameter \"a\": its dims: "),
        (76, &[8, 0, 0, 0], Status::Unsupported, "parameter \"a\": its data_type is 8"),
        (76, &[22, 0, 0, 0], Status::Unsupported, "its data_type is 22; allowed are 1 to 20"),
        (76, &[0, 0, 0, 0], Status::Unsupported, "its data_type is 0"),
        (76, &[11, 0, 0, 0], Status::InvalidModel, "its raw_data has 8 bytes; double[2] needs 16"),
        (80, huge, Status::InvalidModel, "parameter \"a\": its raw_data: "),
        (104, &[0, 0, 0, 0], Status::InvalidModel, "parameter 0 has no name"),
        (108, &[0], Status::InvalidModel, "has a NUL in it"),
        (108, &[0xC3], Status::InvalidModel, "parameter 0: byte 0 of its name is not UTF-8"),
        (108, b"b", Status::InvalidModel, "parameter \"b\" is there twice; names are unique"),
        (120, &[0xFF; 8], Status::InvalidModel, "its dims: dimension 0 is -1; allowed is a number from 0"),
        (
            120,
            &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F],
            Status::InvalidModel,
            "needs more than memory has",
        ),
    ];
    for (at, patch, status, part) in table {
        let mut changed = bytes.to_vec();
        changed[*at..at + patch.len()].copy_from_slice(patch);
        let error = Adapter::from_bytes(&changed.into()).unwrap_err();
        assert_eq!(error.status, *status, "{at}: {error}");
        assert!(error.message.contains(part), "{at}: {error}");
    }
    assert!(Adapter::from_bytes(&Bytes::new()).unwrap_err().message.contains("those of this one are \"\""));
}

/// A list of many entries, each of which leads to the same elements: names differ, so each alone is right.
#[test]
fn parameters_that_overlap_are_refused() {
    let count = 400;
    let elements = 4096;
    let parameters = (0..count).map(|i| (format!("{i:03}"), Tensor::zeros(ElementType::U8, &[0]).unwrap()));
    let adapter = Adapter::of(Versions::default(), parameters.collect()).unwrap();
    let mut bytes = bytes_of(&adapter).to_vec();
    let end = bytes.len().next_multiple_of(4);
    bytes.resize(end, 0);
    bytes.extend((elements as u32).to_le_bytes());
    bytes.resize(end + 4 + elements, 7);
    let tables = 56 + 4 * count;
    for i in 0..count {
        let table = tables + 20 * i;
        let name = table + 4 + u32::from_le_bytes(bytes[table + 4..table + 8].try_into().unwrap()) as usize;
        // The dimensions stand behind the name and its NUL.
        let dims = (name + 4 + 3 + 1 + 4).next_multiple_of(8);
        bytes[dims..dims + 8].copy_from_slice(&(elements as u64).to_le_bytes());
        bytes[table + 16..table + 20].copy_from_slice(&((end - (table + 16)) as u32).to_le_bytes());
    }
    let error = Adapter::from_bytes(&bytes.into()).unwrap_err();
    assert!(error.message.contains("they overlap"), "{error}");
}

#[test]
fn wrong_tensors_are_refused() {
    let zeros = |ty| Tensor::zeros(ty, &[1]).unwrap();
    // SAFETY: nobody reads it.
    let elsewhere = unsafe { crate::tensor::Buffer::on_device(0, 4096, 4, Arc::new(())) };
    let elsewhere = Tensor::from_buffer(ElementType::F32, &[1], elsewhere).unwrap();
    let float = || ("x".to_owned(), zeros(ElementType::F32));
    for (parameters, part) in [
        (vec![(String::new(), zeros(ElementType::F32))], "parameter \"\": a name has a character or more"),
        (vec![("a\0b".to_owned(), zeros(ElementType::F32))], "parameter \"a\\0b\""),
        (vec![float(), float()], "parameter \"x\" is there twice"),
        (vec![("s".to_owned(), zeros(ElementType::String))], "parameter \"s\" is tensor(string)"),
        (vec![("n".to_owned(), zeros(ElementType::I4))], "parameter \"n\" is tensor(int4)"),
        (vec![("d".to_owned(), elsewhere)], "parameter \"d\" is in device memory"),
    ] {
        let error = Adapter::of(Versions::default(), parameters).unwrap_err();
        assert_eq!(error.status, Status::InvalidArgument);
        assert!(error.message.contains(part), "{error}");
    }
}

#[test]
fn an_adapter_of_two_gigabytes_cannot_be_saved() {
    let absent = crate::tensor::Buffer::absent(1 << 30).unwrap();
    let half = |name: &str| {
        (name.to_owned(), Tensor::from_buffer(ElementType::U8, &[1 << 30], absent.clone()).unwrap())
    };
    let adapter = Adapter::of(Versions::default(), vec![half("a"), half("b")]).unwrap();
    let error = adapter.save(Path::new("never")).unwrap_err();
    assert_eq!(error.status, Status::Unsupported);
    assert!(error.message.contains("with parameter \"b\" (1073741824 bytes)"), "{error}");
}
