//! Copies on the device against those of the CPU: every element size, lengths that no unit divides.

use crate::graph::Attribute;
use crate::tensor::{ElementType as E, Tensor, Value};

use super::super::testing::{Both, both, node, on_cpu, on_device, pattern, provider};

const TYPES: [E; 5] = [E::U8, E::F16, E::F32, E::I64, E::C128];

fn ints(values: &[i64]) -> Option<Value> {
    Some(Value::Tensor(Tensor::from_slice(&[values.len()], values).expect("memory for a test")))
}

#[test]
fn movements() {
    for ty in TYPES {
        let cases: [(&str, &[usize], Option<Attribute>); 15] = [
            ("perm", &[37, 70], None),
            ("perm", &[33, 9, 8], None),
            // Whole units of 16 bytes in both directions, with tiles that are not full.
            ("perm", &[72, 136], None),
            ("perm", &[2, 64, 200], Some(Attribute::Ints(vec![0, 2, 1]))),
            ("perm", &[80, 3, 104], Some(Attribute::Ints(vec![2, 1, 0]))),
            ("perm", &[68, 100], None),
            ("perm", &[3, 40, 50], Some(Attribute::Ints(vec![0, 2, 1]))),
            ("perm", &[2, 5, 3, 16], Some(Attribute::Ints(vec![0, 2, 1, 3]))),
            ("perm", &[2, 5, 3, 7], Some(Attribute::Ints(vec![0, 2, 1, 3]))),
            ("perm", &[9, 3, 35, 2], Some(Attribute::Ints(vec![2, 0, 3, 1]))),
            ("perm", &[64, 3, 10, 11], Some(Attribute::Ints(vec![3, 0, 2, 1]))),
            ("perm", &[2, 2, 2, 2, 2, 2, 2, 3], Some(Attribute::Ints(vec![7, 0, 6, 1, 5, 2, 4, 3]))),
            ("perm", &[5, 0, 3], None),
            ("perm", &[], None),
            ("perm", &[3000], None),
        ];
        for (name, shape, perm) in cases {
            let attributes: Vec<_> = perm.map(|p| (name, p)).into_iter().collect();
            let Some(result) = both("Transpose", 21, &attributes, &[pattern(ty, shape)], 1) else { return };
            result.assert_equal(&format!("Transpose {ty} {shape:?} {attributes:?}"));
        }
        let two = ("blocksize", Attribute::Int(2));
        for (op, shape, argument, attributes) in [
            ("Expand", &[3, 1, 5][..], ints(&[2, 1, 4, 1]), vec![]),
            ("Expand", &[1, 17], ints(&[300, 17]), vec![]),
            ("Expand", &[40, 1], ints(&[40, 33]), vec![]),
            ("Tile", &[3, 5], ints(&[2, 3]), vec![]),
            ("Tile", &[2, 1, 16], ints(&[1, 4, 0]), vec![]),
            ("DepthToSpace", &[2, 12, 5, 7], None, vec![two.clone()]),
            ("SpaceToDepth", &[2, 3, 6, 10], None, vec![two]),
            ("Trilu", &[2, 5, 70], None, vec![]),
        ] {
            if op == "Trilu" && ty == E::C128 {
                continue;
            }
            let mut inputs = vec![pattern(ty, shape)];
            inputs.extend(argument.map(Some));
            let Some(result) = both(op, 14, &attributes, &inputs, 1) else { return };
            result.assert_equal(&format!("{op} {ty} {shape:?}"));
        }
    }
}

#[test]
fn parts() {
    for ty in TYPES {
        let x = || pattern(ty, &[6, 9, 34]);
        for (starts, ends, axes, steps) in [
            ([1, 2], [5, 33], [0, 2], [2, 3]),
            ([-1, -1], [i64::MIN, i64::MIN], [1, 2], [-1, -2]),
            ([0, 4], [6, 20], [0, 2], [1, 1]),
            ([3, 0], [3, 5], [1, 0], [1, 1]),
        ] {
            let inputs = [x(), ints(&starts), ints(&ends), ints(&axes), ints(&steps)];
            let Some(result) = both("Slice", 13, &[], &inputs, 1) else { return };
            result.assert_equal(&format!("Slice {ty} {starts:?} {ends:?} {axes:?} {steps:?}"));
        }
        for (axis, lengths) in [(0, [1, 2, 3]), (1, [4, 4, 1]), (2, [16, 0, 18])] {
            let attributes = [("axis", Attribute::Int(axis))];
            let Some(result) = both("Split", 13, &attributes, &[x(), ints(&lengths)], 3) else { return };
            result.assert_equal(&format!("Split {ty} {axis} {lengths:?}"));
            let parts: Vec<Option<Value>> =
                result.cpu.iter().map(|part| Some(Value::Tensor(part.clone()))).collect();
            let Some(result) = both("Concat", 13, &attributes, &parts, 1) else { return };
            result.assert_equal(&format!("Concat {ty} {axis}"));
        }
    }
}

#[test]
fn pads() {
    for ty in TYPES {
        for mode in ["constant", "edge", "reflect", "wrap"] {
            for (shape, pads) in [
                (&[3, 4, 8][..], &[1i64, 0, 0, 2, 0, 0][..]),
                (&[3, 4, 7], &[0, 1, 2, 0, 2, 3]),
                (&[5, 6], &[4, -1, 4, -2]),
                (&[70], &[60, 65]),
            ] {
                let mut inputs = vec![pattern(ty, shape), ints(pads)];
                if mode == "constant" {
                    inputs.push(pattern(ty, &[]));
                }
                let attributes = [("mode", Attribute::String(mode.into()))];
                let Some(result) = both("Pad", 19, &attributes, &inputs, 1) else { return };
                result.assert_equal(&format!("Pad {ty} {mode} {shape:?} {pads:?}"));
            }
        }
    }
}

/// Against the CPU's Pad, Reshape, Transpose, Reshape, Pad.
#[test]
fn blocks_become_pixels() {
    let cpu = |name: &str, attributes: &[(&str, Attribute)], inputs: &[Option<Value>]| {
        let made = on_cpu(&node("", name, 21, attributes, inputs, 1), inputs).remove(0);
        Some(Value::Tensor(made))
    };
    for ty in [E::F16, E::F32] {
        let Some(provider) = provider(&[]) else { return };
        for (shape, [height, width], pads, channels) in [
            // A line of blocks and a line of the image have whole packs, or not.
            ([2usize, 3, 32, 48], [16usize, 16usize], [0usize; 4], 768usize),
            ([1, 3, 8, 24], [2, 8], [0, 0, 1, 0], 48),
            ([1, 2, 4, 21], [2, 8], [0, 8, 0, 3], 32),
            ([2, 3, 20, 22], [2, 2], [3, 3, 4, 4], 16),
            ([1, 4, 9, 10], [1, 1], [1, 1, 1, 1], 8),
            ([3, 1, 7, 8], [3, 2], [0, 1, 1, 0], 8),
            // Lines that fill no block.
            ([1, 3, 11, 11], [4, 4], [0, 0, 0, 0], 48),
        ] {
            let x = pattern(ty, &shape);
            let [top, left, bottom, right] = pads;
            let [images, of_image, lines, columns] = shape;
            let (down, along) = ((lines + top + bottom) / height, (columns + left + right) / width);
            // What fills no block is cut off by a negative end.
            let cut = |size: usize, blocks: usize, begin: usize| (blocks - begin) as i64 - size as i64;
            let ends = [cut(lines, down * height, top), cut(columns, along * width, left)];
            let around = ints(&[0, 0, top as i64, left as i64, 0, 0, ends[0], ends[1]]);
            let padded = cpu("Pad", &[], &[x.clone(), around]);
            let split = [images, of_image, down, height, along, width].map(|n| n as i64);
            let split = cpu("Reshape", &[], &[padded, ints(&split)]);
            let moved = cpu("Transpose", &[("perm", Attribute::Ints(vec![0, 2, 4, 1, 3, 5]))], &[split]);
            let pixels = cpu("Reshape", &[], &[moved, ints(&[images as i64, down as i64, along as i64, -1])]);
            let zeros = (channels - of_image * height * width) as i64;
            let wanted = cpu("Pad", &[], &[pixels, ints(&[0, 0, 0, 0, 0, 0, 0, zeros])]);
            let wanted = wanted.iter().filter_map(|v| v.as_tensor().cloned()).collect::<Vec<_>>();
            let list = |list: &[usize]| Attribute::Ints(list.iter().map(|&n| n as i64).collect());
            let attributes = [
                ("blocks", list(&[height, width])),
                ("pads", list(&pads)),
                ("channels", Attribute::Int(channels as i64)),
            ];
            let inputs = [x];
            let node = node("rukh", "NhwcSpaceToDepth", 1, &attributes, &inputs, 1);
            let device = on_device(&provider, &node, &inputs, &wanted).unwrap();
            Both { device, cpu: wanted }.assert_equal(&format!("{ty} {shape:?} {height}x{width} {pads:?}"));
        }
    }
}
