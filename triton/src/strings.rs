//! Tensors of strings as Triton lays them out: for each element its length in 4 bytes, the lowest first, and its bytes.

use rukh_client::Value;

use crate::error::{Error, Result, fail};

/// The strings of an input. Each must be UTF-8, as librukh's are.
pub(crate) fn decode(name: &str, bytes: &[u8], count: usize) -> Result<Vec<Vec<u8>>> {
    let (mut texts, mut rest) = (Vec::new(), bytes);
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let Some((text, after)) = after.split_at_checked(length) else {
            fail!(
                TRITONSERVER_ERROR_INVALID_ARG,
                "input \"{name}\": string {} is said to have {length} bytes, and {} follow",
                texts.len(),
                after.len()
            );
        };
        if let Err(error) = std::str::from_utf8(text) {
            fail!(
                TRITONSERVER_ERROR_INVALID_ARG,
                "input \"{name}\": string {} is no UTF-8, as ONNX wants it: {error}",
                texts.len()
            );
        }
        texts.push(text.to_vec());
        rest = after;
    }
    if !rest.is_empty() || texts.len() != count {
        fail!(
            TRITONSERVER_ERROR_INVALID_ARG,
            "input \"{name}\": {} strings and {} bytes more were given for {count} elements",
            texts.len(),
            rest.len()
        );
    }
    Ok(texts)
}

/// The elements of a range.
pub(crate) fn encode(value: &Value, range: std::ops::Range<usize>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for index in range {
        append(&mut bytes, &value.text(index)?)?;
    }
    Ok(bytes)
}

fn append(bytes: &mut Vec<u8>, text: &[u8]) -> Result<()> {
    let Ok(length) = u32::try_from(text.len()) else {
        return Err(Error::new(
            crate::api::TRITONSERVER_ERROR_UNSUPPORTED,
            format!("a string of {} bytes is longer than Triton's strings may be", text.len()),
        ));
    };
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(text);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_come_back() {
        let texts: [&[u8]; 3] = [b"", "gr\u{fc}n".as_bytes(), b"a\0b"];
        let mut bytes = Vec::new();
        for text in texts {
            append(&mut bytes, text).unwrap();
        }
        assert_eq!(decode("x", &bytes, 3).unwrap(), texts);
    }

    #[test]
    fn bytes_that_are_no_strings_are_refused() {
        for (bytes, count, expected) in [
            (&b"\x05\0\0\0abc"[..], 1, "said to have 5 bytes, and 3 follow"),
            (b"\x01\0\0\0a\0\0", 1, "1 strings and 2 bytes more"),
            (b"\x01\0\0\0a", 2, "for 2 elements"),
            (b"\x01\0\0\0\xff", 1, "no UTF-8"),
            (b"\xff\xff\xff\xff", 1, "4294967295 bytes"),
        ] {
            let message = decode("x", bytes, count).unwrap_err().message;
            assert!(message.contains(expected), "{message}");
        }
    }
}
