//! NumPy's `.npy` format, versions 1 to 3:
//! <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>.

use super::{Data, ElementType, Tensor};

const MAGIC: &[u8] = b"\x93NUMPY";

/// Reads an array. Arrays in Fortran order are put in C order.
pub fn read_npy(bytes: &[u8]) -> Result<Tensor, String> {
    let rest = bytes.strip_prefix(MAGIC).ok_or("it does not start as a .npy file does")?;
    let (header, body) = match rest {
        [1, _, a, b, rest @ ..] => split(rest, u16::from_le_bytes([*a, *b]) as usize),
        [2 | 3, _, a, b, c, d, rest @ ..] => split(rest, u32::from_le_bytes([*a, *b, *c, *d]) as usize),
        [major, ..] => return Err(format!("version {major} of .npy is not known; known are 1 to 3")),
        [] => None,
    }
    .ok_or("the .npy header is cut off")?;
    let header = String::from_utf8_lossy(header);
    let descr = quoted(&header, "descr").ok_or_else(|| format!("no simple type in the header {header}"))?;
    let dims = shape(&header).ok_or_else(|| format!("no shape in the header {header}"))?;
    let fortran = field(&header, "fortran_order").is_some_and(|v| v.starts_with("True"));
    let count = dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d)).ok_or("the shape overflows")?;

    let (element, big_endian, width) = parse_type(descr)?;
    let total = count.checked_mul(width).ok_or("the shape overflows")?;
    let body = body
        .get(..total)
        .ok_or_else(|| format!("{} bytes of data, but {descr} {dims:?} takes {total}", body.len()))?;
    let mut body = body.to_vec();
    if fortran {
        body = from_fortran(&body, &dims, width);
    }
    if element.is_string() {
        let strings = (0..count).map(|i| text(&body[i * width..(i + 1) * width], descr, big_endian));
        return Tensor::from_strings(dims, strings.collect());
    }
    if big_endian {
        // A complex number is two numbers, each swapped on its own.
        let part = if descr.contains('c') { width / 2 } else { width };
        body.chunks_exact_mut(part).for_each(<[u8]>::reverse);
    }
    Tensor::from_bytes(element, dims, body)
}

/// Writes an array. Types that NumPy does not have are stored as the unsigned integer of their size.
pub fn write_npy(tensor: &Tensor) -> Vec<u8> {
    let (descr, body) = match &tensor.data {
        Data::Bytes(bytes) => {
            let descr =
                tensor.element.numpy().unwrap_or(if tensor.element.size() == 2 { "<u2" } else { "|u1" });
            (descr.to_owned(), bytes.clone())
        }
        Data::Strings(strings) => unicode(strings),
    };
    let dims: String = tensor.dims.iter().map(|d| format!("{d}, ")).collect();
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}), }}", dims.trim_end());
    // The data start at a multiple of 64 bytes; the header ends with a newline.
    while !(MAGIC.len() + 4 + header.len() + 1).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut out = MAGIC.to_vec();
    out.extend([1, 0]);
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.as_bytes());
    out.extend(body);
    out
}

fn split(bytes: &[u8], at: usize) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(at)
}

/// What follows `'name':` in the header, which is the text of a Python dictionary.
fn field<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    let at = header.find(&format!("'{name}'"))? + name.len() + 2;
    Some(header[at..].trim_start().strip_prefix(':')?.trim_start())
}

fn quoted<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    field(header, name)?.strip_prefix('\'')?.split('\'').next()
}

fn shape(header: &str) -> Option<Vec<usize>> {
    let inside = field(header, "shape")?.strip_prefix('(')?.split(')').next()?;
    inside.split(',').map(str::trim).filter(|s| !s.is_empty()).map(|s| s.parse().ok()).collect()
}

/// The element type, whether it is big-endian, and the bytes of one element in the file.
fn parse_type(descr: &str) -> Result<(ElementType, bool, usize), String> {
    let big_endian = descr.starts_with('>');
    let kind = descr.trim_start_matches(['<', '>', '|', '=']);
    for (letter, unit) in [('U', 4), ('S', 1)] {
        if let Some(length) = kind.strip_prefix(letter).and_then(|n| n.parse::<usize>().ok()) {
            let width = length.checked_mul(unit).ok_or("the type overflows")?;
            return Ok((ElementType::STRING, big_endian, width));
        }
    }
    let little = [format!("<{kind}"), format!("|{kind}")];
    match little.iter().find_map(|d| ElementType::from_numpy(d)) {
        Some(element) => Ok((element, big_endian, element.size())),
        None => {
            Err(format!("the type '{descr}' is not one that ONNX has; objects and bfloat16 need a .pb file"))
        }
    }
}

/// One string of a fixed-width array: `U` is UTF-32, `S` is bytes; zeros at the end are padding.
fn text(cell: &[u8], descr: &str, big_endian: bool) -> Vec<u8> {
    if descr.contains('S') {
        let end = cell.iter().rposition(|&b| b != 0).map_or(0, |i| i + 1);
        return cell[..end].to_vec();
    }
    let read = if big_endian { u32::from_be_bytes } else { u32::from_le_bytes };
    let string: String = cell
        .chunks_exact(4)
        .map(|c| char::from_u32(read([c[0], c[1], c[2], c[3]])).unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect();
    string.trim_end_matches('\0').as_bytes().to_vec()
}

/// Strings as a fixed-width array of UTF-32.
fn unicode(strings: &[Vec<u8>]) -> (String, Vec<u8>) {
    let texts: Vec<Vec<char>> =
        strings.iter().map(|s| String::from_utf8_lossy(s).chars().collect()).collect();
    let width = texts.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let mut body = Vec::with_capacity(texts.len() * width * 4);
    for text in &texts {
        let padded = text.iter().copied().chain(std::iter::repeat('\0')).take(width);
        body.extend(padded.flat_map(|c| u32::from(c).to_le_bytes()));
    }
    (format!("<U{width}"), body)
}

/// Elements from column-major into row-major order.
fn from_fortran(body: &[u8], dims: &[usize], width: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len());
    let mut strides = vec![1; dims.len()];
    for i in 1..dims.len() {
        strides[i] = strides[i - 1] * dims[i - 1];
    }
    let mut index = vec![0; dims.len()];
    for _ in 0..body.len() / width.max(1) {
        let at: usize = index.iter().zip(&strides).map(|(i, s)| i * s).sum();
        out.extend(&body[at * width..(at + 1) * width]);
        for axis in (0..dims.len()).rev() {
            index[axis] += 1;
            if index[axis] < dims[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(version: u8, header: &str, body: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([version, 0]);
        match version {
            1 => bytes.extend((header.len() as u16).to_le_bytes()),
            _ => bytes.extend((header.len() as u32).to_le_bytes()),
        }
        bytes.extend(header.as_bytes());
        bytes.extend(body);
        bytes
    }

    #[test]
    fn what_is_written_reads_back() {
        for tensor in [
            Tensor::from_bytes(ElementType::FLOAT, vec![2, 1], [1f32, -2.5].map(f32::to_le_bytes).concat()),
            Tensor::from_bytes(ElementType::INT64, vec![], 7i64.to_le_bytes().to_vec()),
            Tensor::from_bytes(ElementType::BOOL, vec![0, 3], vec![]),
            Tensor::from_strings(vec![2], vec![b"rukh".to_vec(), "Ж".as_bytes().to_vec()]),
        ] {
            let tensor = tensor.unwrap();
            let bytes = write_npy(&tensor);
            assert_eq!(read_npy(&bytes).unwrap(), tensor);
        }
    }

    #[test]
    fn orders_of_bytes_and_axes() {
        let header = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }";
        // Columns (1, 4), (2, 5), (3, 6), big-endian.
        let body: Vec<u8> = [1i16, 4, 2, 5, 3, 6].iter().flat_map(|v| v.to_be_bytes()).collect();
        for version in [1, 2] {
            let tensor = read_npy(&file(version, header, &body)).unwrap();
            assert_eq!(tensor.numbers(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        }
    }

    #[test]
    fn wrong_files_say_why() {
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
        for (bytes, part) in [
            (b"PK".to_vec(), "does not start"),
            (file(1, header, &[0; 11]), "11 bytes of data, but <f4 [3] takes 12"),
            (file(1, &header.replace("<f4", "|O"), &[]), "'|O' is not one that ONNX has"),
            (file(1, &header.replace("(3,)", "(99999999999, 99999999999)"), &[]), "overflows"),
            (file(9, header, &[]), "version 9"),
            (MAGIC.to_vec(), "cut off"),
        ] {
            let error = read_npy(&bytes).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
