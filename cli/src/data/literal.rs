//! Inputs written on the command line as iree-run-module takes them: `1x3x224x224xf32=0`, `4xf32=1 2 3 4`, `f32=3`.

use half::{bf16, f16};

use super::{Dim, ElementType, Kind, Port, Tensor, Value};

/// Names of types with their ONNX numbers. An `i` without a sign also stands for the unsigned type of its width.
const TYPES: [(&str, i32); 29] = [
    ("f32", 1),
    ("ui8", 2),
    ("u8", 2),
    ("i8", 3),
    ("si8", 3),
    ("ui16", 4),
    ("u16", 4),
    ("i16", 5),
    ("si16", 5),
    ("i32", 6),
    ("si32", 6),
    ("i64", 7),
    ("si64", 7),
    ("i1", 9),
    ("bool", 9),
    ("f16", 10),
    ("f64", 11),
    ("ui32", 12),
    ("u32", 12),
    ("ui64", 13),
    ("u64", 13),
    ("bf16", 16),
    ("f8E4M3FN", 17),
    ("f8E4M3FNUZ", 18),
    ("f8E5M2", 19),
    ("f8E5M2FNUZ", 20),
    ("u4", 21),
    ("i4", 22),
    ("f4E2M1FN", 23),
];

/// A shape, a type and the text of the values; no text stands for zeros.
#[derive(Debug, PartialEq)]
pub struct Literal<'a> {
    dims: Vec<usize>,
    type_name: &'a str,
    element: ElementType,
    values: &'a str,
}

/// What `text` says when it has the form of a literal; `None` when it has not, so that it is a file or a name.
pub fn parse_literal(text: &str) -> Option<Result<Literal<'_>, String>> {
    let (head, values) = text.split_once('=').map_or((text, None), |(head, values)| (head, Some(values)));
    let (type_at, dims) = leading_dims(head)?;
    let type_name = &head[type_at..];
    let Some(&(_, number)) = TYPES.iter().find(|(name, _)| *name == type_name) else {
        // Only a shape and "=" tell that a type was meant.
        (type_at > 0 && values.is_some()).then_some(())?;
        let known = TYPES.map(|(name, _)| name).join(", ");
        return Some(Err(format!("the type \"{type_name}\" is not known; known are {known}")));
    };
    let literal =
        |dims| Literal { dims, type_name, element: ElementType(number), values: values.unwrap_or("") };
    Some(dims.map(literal))
}

/// Where the type begins, after dimensions that are each followed by "x"; the dimensions, or which is too large.
fn leading_dims(head: &str) -> Option<(usize, Result<Vec<usize>, String>)> {
    let (mut at, mut dims) = (0, Ok(Vec::new()));
    while let Some((digits, _)) = head[at..].split_once('x') {
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            break;
        }
        dims = dims.and_then(|mut all: Vec<usize>| {
            all.push(digits.parse().map_err(|_| format!("the dimension {digits} is too large"))?);
            Ok(all)
        });
        at += digits.len() + 1;
    }
    (at < head.len()).then_some((at, dims))
}

impl Literal<'_> {
    /// The value for `port`, whose type and shape it must have.
    pub fn value(&self, port: &Port) -> Result<Value, String> {
        let element = self.element_for(port)?;
        self.check_shape(port)?;
        let large = || format!("{element}{:?} is larger than memory", self.dims);
        let count = self.dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d)).ok_or_else(large)?;
        let size = count.checked_mul(element.size()).ok_or_else(large)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size).map_err(|_| large())?;
        let texts: Vec<&str> = self.values.split([' ', ',', '[', ']']).filter(|t| !t.is_empty()).collect();
        match texts[..] {
            ["range"] => {
                for i in 0..count {
                    bytes.extend(encode(element, &i.to_string())?);
                }
            }
            [] if self.values.is_empty() => bytes.resize(size, 0),
            [one] => bytes.extend(encode(element, one)?.repeat(count)),
            _ if texts.len() == count => {
                for text in texts {
                    bytes.extend(encode(element, text)?);
                }
            }
            _ => {
                return Err(format!(
                    "{} values, but {:?} takes {count}, or one for all, or \"range\" for 0, 1, 2, …",
                    texts.len(),
                    self.dims
                ));
            }
        }
        Tensor::from_bytes(element, self.dims.clone(), bytes).map(Value::Tensor)
    }

    fn element_for(&self, port: &Port) -> Result<ElementType, String> {
        let wrong =
            || format!("the type is {}, but input \"{}\" is {}", self.type_name, port.name, port.describe());
        let (Kind::Tensor, Some(wanted)) = (port.kind, port.element) else {
            return Err(format!("{}; give it as a .pb file", wrong()));
        };
        let bare = self.type_name.starts_with('i');
        let same_width = matches!((self.element.0, wanted.0), (3, 2) | (5, 4) | (6, 12) | (7, 13) | (22, 21));
        match wanted == self.element || bare && same_width {
            true => Ok(wanted),
            false => Err(wrong()),
        }
    }

    fn check_shape(&self, port: &Port) -> Result<(), String> {
        let Some(shape) = &port.shape else { return Ok(()) };
        let fits = |(dim, &size): (&Dim, &usize)| !matches!(dim, Dim::Fixed(n) if *n != size);
        match shape.len() == self.dims.len() && shape.iter().zip(&self.dims).all(fits) {
            true => Ok(()),
            false => {
                let (name, takes) = (&port.name, port.describe());
                Err(format!("the shape is {:?}, but input \"{name}\" is {takes}", self.dims))
            }
        }
    }
}

/// The bytes of one element.
fn encode(element: ElementType, text: &str) -> Result<Vec<u8>, String> {
    let wrong = || format!("\"{text}\" is not a number that {element} holds");
    macro_rules! number {
        ($ty:ty) => {
            text.parse::<$ty>().map(|v| v.to_le_bytes().to_vec()).map_err(|_| wrong())
        };
    }
    let float = || text.parse::<f64>().map_err(|_| wrong());
    let narrow = |low: i8, high: i8| match text.parse::<i8>() {
        Ok(v) if (low..=high).contains(&v) => Ok(vec![v as u8]),
        _ => Err(wrong()),
    };
    match element.0 {
        1 => number!(f32),
        2 => number!(u8),
        3 => number!(i8),
        4 => number!(u16),
        5 => number!(i16),
        6 => number!(i32),
        7 => number!(i64),
        9 => match text {
            "0" | "false" => Ok(vec![0]),
            "1" | "true" => Ok(vec![1]),
            _ => Err(format!("\"{text}\" is not a boolean; allowed are 0, 1, false and true")),
        },
        10 => float().map(|v| f16::from_f64(v).to_le_bytes().to_vec()),
        11 => number!(f64),
        12 => number!(u32),
        13 => number!(u64),
        16 => float().map(|v| bf16::from_f64(v).to_le_bytes().to_vec()),
        17..=20 | 23 => small_float(element, float()?).map(|code| vec![code]).ok_or_else(wrong),
        21 => narrow(0, 15),
        22 => narrow(-8, 7),
        _ => Err(format!("{element} has no form on the command line; give it as a file")),
    }
}

/// The code of a small float that is nearest to `value`, the even one of two; `None` beyond the largest.
fn small_float(element: ElementType, value: f64) -> Option<u8> {
    let codes: Vec<u8> = (0..=if element.0 == 23 { 15 } else { 255 }).collect();
    let numbers = element.numbers(&codes);
    let special = |n: &f64| if value.is_nan() { n.is_nan() } else { *n == value };
    if !value.is_finite() {
        return numbers.iter().position(special).map(|code| code as u8);
    }
    let finite = || numbers.iter().zip(&codes).filter(|(n, _)| n.is_finite());
    let largest = finite().map(|(n, _)| n.abs()).fold(0.0, f64::max);
    (value.abs() <= largest).then_some(())?;
    // Zero has two codes; the sign tells them apart.
    let signed = finite().filter(|(n, _)| n.is_sign_negative() == value.is_sign_negative() || **n == 0.0);
    let distance = |n: f64| (n - value).abs();
    signed
        .min_by(|(a, i), (b, j)| {
            let sign = |n: f64| n.is_sign_negative() != value.is_sign_negative();
            distance(**a)
                .total_cmp(&distance(**b))
                .then(sign(**a).cmp(&sign(**b)))
                .then((**i & 1).cmp(&(**j & 1)))
        })
        .map(|(_, code)| *code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(element: i32, shape: Option<Vec<Dim>>) -> Port {
        Port { name: "x".into(), kind: Kind::Tensor, element: Some(ElementType(element)), shape }
    }

    fn read(text: &str, element: i32) -> Result<(Vec<usize>, Vec<f64>), String> {
        let literal = parse_literal(text).ok_or("not a literal")??;
        match literal.value(&port(element, None))? {
            Value::Tensor(tensor) => Ok((tensor.dims.clone(), tensor.numbers())),
            other => Err(other.describe()),
        }
    }

    #[test]
    fn literals_give_their_numbers() {
        let cases: &[(&str, i32, &[usize], &[f64])] = &[
            ("4xf32=1 2 3 4", 1, &[4], &[1.0, 2.0, 3.0, 4.0]),
            ("2x2xi32=[1 2][3 -4]", 6, &[2, 2], &[1.0, 2.0, 3.0, -4.0]),
            ("2x2xi64=range", 7, &[2, 2], &[0.0, 1.0, 2.0, 3.0]),
            ("f32=3", 1, &[], &[3.0]),
            ("1x3xf16=0.5", 10, &[1, 3], &[0.5, 0.5, 0.5]),
            ("2xbf16=-1,2", 16, &[2], &[-1.0, 2.0]),
            ("2xf64", 11, &[2], &[0.0, 0.0]),
            ("0xf32=", 1, &[0], &[]),
            ("2xi8=255 1", 2, &[2], &[255.0, 1.0]),
            ("2xi1=true 0", 9, &[2], &[1.0, 0.0]),
            ("2xi4=-8 7", 22, &[2], &[-8.0, 7.0]),
            // The halfway value goes to the even code; reference values from ml_dtypes.
            ("3xf8E4M3FN=448 1.0625 -0.3", 17, &[3], &[448.0, 1.0, -0.3125]),
            ("2xf8E5M2=57344 3", 19, &[2], &[57344.0, 3.0]),
            ("3xf4E2M1FN=5 -6 0", 23, &[3], &[4.0, -6.0, 0.0]),
        ];
        for (text, element, dims, numbers) in cases {
            let read = read(text, *element).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(read, (dims.to_vec(), numbers.to_vec()), "{text}");
        }
    }

    #[test]
    fn wrong_literals_say_why() {
        let cases = [
            ("4xf32=1 2 3", 1, "3 values, but [4] takes 4"),
            ("4xf32=1 2 3 q", 1, "\"q\" is not a number that float holds"),
            ("4xf3=1", 1, "the type \"f3\" is not known; known are f32"),
            ("i8=300", 3, "\"300\" is not a number that int8 holds"),
            ("3xi8=-1", 2, "\"-1\" is not a number that uint8 holds"),
            ("i4=8", 22, "\"8\" is not a number that int4 holds"),
            ("i1=2", 9, "allowed are 0, 1, false and true"),
            ("f8E4M3FN=449", 17, "\"449\""),
            ("f8E4M3FN=inf", 17, "\"inf\""),
            ("4xf32= ", 1, "0 values, but [4] takes 4"),
            ("4xf32=1", 11, "the type is f32, but input \"x\" is double[…]"),
            ("300xi8=range", 3, "\"128\""),
            ("99999999999999999999xf32=0", 1, "99999999999999999999 is too large"),
            ("4000000000x4000000000xf32=0", 1, "larger than memory"),
        ];
        for (text, element, part) in cases {
            let error = read(text, element).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
        let fixed = port(1, Some(vec![Dim::Symbol("n".into()), Dim::Fixed(3)]));
        for (text, part) in [("2x3xf32=0", ""), ("2x4xf32=0", "float[n, 3]"), ("3xf32=0", "the shape is [3]")]
        {
            let value = parse_literal(text).unwrap().unwrap().value(&fixed);
            assert_eq!(value.is_ok(), part.is_empty(), "{text}");
            assert!(value.err().unwrap_or_default().contains(part), "{text}");
        }
    }

    #[test]
    fn files_and_names_are_no_literals() {
        for text in ["sample.npz", "image=photo.npy", "x=1", "4xfoo", "", "4x", "x"] {
            assert!(parse_literal(text).is_none(), "{text}");
        }
    }
}
