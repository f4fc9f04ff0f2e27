//! Tensors of strings, and the buffers that callers write them into.

mod support;

use ort_sys::OrtErrorCode::*;
use support::*;

#[test]
fn strings() {
    let value = Value::strings(&[2, 2], &["rukh", "", "größer", "roc"]);
    assert_eq!(value.texts(), ["rukh", "", "größer", "roc"]);
    // SAFETY: the values are live, and places for results are given.
    unsafe {
        check((api().FillStringTensorElement)(value.0, c"bird".as_ptr(), 1)).unwrap();
        let buffer = get(|out| (api().GetResizedStringTensorElementBuffer)(value.0, 3, 5, out)).unwrap();
        buffer.cast::<u8>().copy_from_nonoverlapping(b"eagle".as_ptr(), 5);
        assert!(get(|out| (api().GetResizedStringTensorElementBuffer)(value.0, 4, 5, out)).is_err());
        assert_eq!(value.texts(), ["rukh", "bird", "größer", "eagle"]);
        let length = get(|out| (api().GetStringTensorElementLength)(value.0, 2, out)).unwrap();
        assert_eq!(length, "größer".len());
        let mut bytes = vec![0_u8; length];
        check((api().GetStringTensorElement)(value.0, length, 2, bytes.as_mut_ptr().cast())).unwrap();
        assert_eq!(bytes, "größer".as_bytes());
        let short = (api().GetStringTensorElement)(value.0, length - 1, 2, bytes.as_mut_ptr().cast());
        assert_eq!(check(short).err().unwrap().0, ORT_INVALID_ARGUMENT);
        assert!(value.address().is_err());
        let one = [c"only one".as_ptr()];
        assert!(check((api().FillStringTensor)(value.0, one.as_ptr(), 1)).is_err());
    }
}

#[test]
fn a_buffer_for_a_string_stays_until_the_string_is_another() {
    let value = Value::strings(&[3], &["a", "b", "c"]);
    // SAFETY: as above; what is written lies within the buffers.
    unsafe {
        let buffer = |index, length| {
            get(|out| (api().GetResizedStringTensorElementBuffer)(value.0, index, length, out))
                .unwrap()
                .cast::<u8>()
        };
        let (first, second) = (buffer(0, 5), buffer(1, 0));
        assert!(!second.is_null());
        first.copy_from_nonoverlapping(b"eagle".as_ptr(), 5);
        assert_eq!(value.texts(), ["eagle", "", "c"]);
        // After the value was used, the buffer is still what the string is.
        first.copy_from_nonoverlapping(b"EA".as_ptr(), 2);
        assert_eq!(value.texts(), ["EAgle", "", "c"]);
        assert_eq!(std::slice::from_raw_parts(first, 5), b"EAgle");
        // A buffer for one string leaves those of the others where they are.
        buffer(2, 3).copy_from_nonoverlapping(b"owl".as_ptr(), 3);
        first.write(b'B');
        assert_eq!(value.texts(), ["BAgle", "", "owl"]);
        // The same string resized, or set, is another one.
        buffer(0, 2).copy_from_nonoverlapping(b"xy".as_ptr(), 2);
        assert_eq!(value.texts(), ["xy", "", "owl"]);
        check((api().FillStringTensorElement)(value.0, c"roc".as_ptr(), 0)).unwrap();
        assert_eq!(value.texts(), ["roc", "", "owl"]);
        let all = [c"1".as_ptr(), c"2".as_ptr(), c"3".as_ptr()];
        check((api().FillStringTensor)(value.0, all.as_ptr(), 3)).unwrap();
        assert_eq!(value.texts(), ["1", "2", "3"]);
    }
}
