use super::*;
use crate::ops::window::{Padding, Window};
use crate::provider::packs::NodePacks;
use crate::tensor::{Buffer, Tensor, ValueType};

/// ConvInteger with kernels of 3 × 3 and a border of one.
fn convolution() -> QuantizedConv {
    let padding = Padding::Explicit(vec![1; 4]);
    let window = Window { kernel: vec![], strides: vec![], dilations: vec![], padding, ceil: false };
    let [requantized, channels_last] = [false; 2];
    QuantizedConv { window, group: 1, requantized, channels_last, channel_blocked: [false; 2] }
}

/// The packed weight of such a node: its bytes are signed with the sign bit flipped by `flip`.
fn rows(weight: &[u8], flip: u8, shape: [usize; 2], pool: &Pool, packs: Option<&NodePacks>) -> PairRows {
    rows_of(convolution(), weight, flip, shape, pool, packs).expect("a weight for products of pairs")
}

fn rows_of(
    op: QuantizedConv,
    weight: &[u8],
    flip: u8,
    [m, channels]: [usize; 2],
    pool: &Pool,
    packs: Option<&NodePacks>,
) -> Option<PairRows> {
    let ty = if flip == 0 { ElementType::I8 } else { ElementType::U8 };
    let signed: Vec<i8> = weight.iter().map(|&byte| byte as i8).collect();
    let shape = [m, channels, 3, 3];
    let weight = match flip {
        0 => Tensor::from_slice(&shape, &signed).unwrap(),
        _ => Tensor::from_slice(&shape, weight).unwrap(),
    };
    let zero = match flip {
        0 => Tensor::from_slice(&[], &[0i8]).unwrap(),
        _ => Tensor::from_slice(&[], &[flip]).unwrap(),
    };
    let types = [ElementType::U8, ty, ElementType::U8, ty].map(|ty| Some(ValueType::Tensor(ty)));
    let node = NodeContext {
        provider: "CPU",
        domain: "",
        name: "test",
        op: &op,
        input_types: &types,
        output_types: &[Some(ValueType::Tensor(ElementType::I32))],
        constants: &[None, Some(&weight), None, Some(&zero)],
        pool,
        packs,
    };
    PairRows::new(&node, &op).unwrap()
}

/// Where the weights are not there, what was packed of them is found again: the size of tiles does not hang on zeros.
#[test]
fn packed_weights_are_found_without_their_sources() {
    if !pairs::available() {
        return;
    }
    let pool = Pool::new(1);
    for (flip, [m, channels], large, size) in [
        (128, [33, 116], false, 4),
        (128, [32, 256], false, 4),
        (0, [33, 116], true, 2),
        (0, [33, 116], false, 4),
    ] {
        let mut weight: Vec<u8> = (0..m * channels * 9).map(|i| (i * 7919 % 37) as u8 ^ flip).collect();
        if large {
            weight[..channels * 9].fill(127);
        }
        let packs = NodePacks::recorded(1);
        let before = rows(&weight, flip, [m, channels], &pool, Some(&packs));
        assert!(packs.is_complete());
        let packs = NodePacks::kept(1, packs.into_recorded(), false);
        let after = rows(&vec![0; weight.len()], flip, [m, channels], &pool, Some(&packs));
        assert!(packs.is_complete(), "{channels} channels, flipped by {flip}");
        let [before, after] = [before, after].map(|rows| (rows.winograd.unwrap(), rows.dot_groups));
        assert_eq!((before.0.shape.size, after.0.shape.size), (size, size));
        assert!(*before.0.words == *after.0.words && *before.1 == *after.1);
    }
}

/// Rests that do not belong to the weight are not used: products would read and write elsewhere.
#[test]
fn damaged_rests_are_noticed() {
    if !pairs::available() {
        return;
    }
    let (pool, shape) = (Pool::new(1), [33, 37]);
    let weight = partly_cut(0, shape);
    let packs = NodePacks::recorded(1);
    let depth = rows(&weight, 0, shape, &pool, Some(&packs)).depth as u32;
    let packs = packs.into_recorded();
    // After the dot groups: ends, each with whether a strip was cut, and rests, of a place and a group.
    let changed = |piece: usize, at: Option<usize>, word: u32| {
        let mut words: Vec<u32> = bytemuck::pod_collect_to_vec(packs[piece].bytes());
        if let Some(at) = at {
            words[at] = word;
        }
        let mut packs = packs.clone();
        packs[piece].buffer = Buffer::copy_of(bytemuck::cast_slice(&words)).unwrap().into();
        packs[piece].start = 0;
        [false, true].map(|sources| {
            let packs = NodePacks::kept(1, packs.clone(), sources);
            rows(&weight, 0, shape, &pool, Some(&packs));
            packs.is_complete()
        })
    };
    let last = packs[1].len / 4 - 2;
    assert_eq!([changed(1, None, 0), changed(2, None, 0)], [[true; 2]; 2]);
    assert_eq!(changed(2, Some(0), (depth - 1) << 8 | (ROWS as u32 - 1)), [true; 2]);
    let damaged =
        [(2, 0, depth << 8), (2, 2, ROWS as u32), (1, 0, u32::MAX), (1, last, u32::MAX), (1, last, 0)];
    for (piece, at, word) in damaged {
        assert_eq!(changed(piece, Some(at), word), [false; 2], "{piece} {at} {word}");
    }
}

/// So is the order of channels, which has to be one of those that there are.
#[test]
fn the_order_of_channels_is_kept() {
    if !pairs::available() {
        return;
    }
    let (pool, shape) = (Pool::new(1), [33, 38]);
    let strided = || {
        let mut op = convolution();
        op.window.strides = vec![2, 2];
        op
    };
    let weight = partly_cut(0, shape);
    let packs = NodePacks::recorded(1);
    let before = rows_of(strided(), &weight, 0, shape, &pool, Some(&packs)).unwrap();
    assert!(packs.is_complete() && !before.order.iter().copied().eq(0..38));
    let kept = packs.into_recorded();
    let packs = NodePacks::kept(1, kept.clone(), false);
    let after = rows_of(strided(), &vec![0; weight.len()], 0, shape, &pool, Some(&packs)).unwrap();
    assert!(packs.is_complete() && *before.order == *after.order && *before.dot_groups == *after.dot_groups);
    // One that is not there, and one twice.
    for word in [38, before.order[4]] {
        let mut words: Vec<u32> = bytemuck::pod_collect_to_vec(kept[1].bytes());
        words[5] = word;
        let mut damaged = kept.clone();
        damaged[1].buffer = Buffer::copy_of(bytemuck::cast_slice(&words)).unwrap().into();
        damaged[1].start = 0;
        let packs = NodePacks::kept(1, damaged, true);
        rows_of(strided(), &weight, 0, shape, &pool, Some(&packs));
        assert!(!packs.is_complete(), "{word}");
    }
}

/// A copy of the image with gaps between what windows read could be of any size.
#[test]
fn gaps_are_not_copied() {
    if !pairs::available() {
        return;
    }
    for (strides, dilations, flat) in
        [([3, 3], [1, 1], true), ([1, 4], [1, 1], false), ([1, 1], [1, 2], false)]
    {
        let mut op = convolution();
        (op.window.strides, op.window.dilations) = (strides.to_vec(), dilations.to_vec());
        let rows = rows_of(op, &[1; 5 * 27], 0, [5, 3], &Pool::new(1), None).unwrap();
        assert_eq!(rows.flat, flat, "{strides:?} {dilations:?}");
    }
}

/// A weight of which some strips are cut and have rests, and others are not.
fn partly_cut(flip: u8, [m, channels]: [usize; 2]) -> Vec<u8> {
    let byte = |i: usize| match (i / (channels * 9) / ROWS, i % 31) {
        (strip, _) if strip % 3 == 2 => [127, 100, 126, 90][i % 4],
        (strip, 0 | 4) if strip % 3 == 1 => [127, 128][i / 200 % 2],
        _ => (i * 7919 % 101 + 206) as u8,
    };
    (0..m * channels * 9).map(|i| byte(i) ^ flip).collect()
}

#[test]
fn smaller_tiles_are_made_of_dot_groups_and_rests() {
    if !pairs::available() {
        return;
    }
    let (pool, shape) = (Pool::new(2), [33, 37]);
    for flip in [0, 128] {
        let weight = partly_cut(flip, shape);
        let rows = rows(&weight, flip, shape, &pool, None);
        let rests: Vec<_> = (0..shape[0].div_ceil(ROWS)).map(|i| rows.rests.of(i)).collect();
        assert!(rests.contains(&None) && rests.iter().flatten().any(|rests| !rests.is_empty()));
        let words = WinogradRows::with_size(&weight, flip, shape, 2, (&pool).into()).words;
        assert!(*rows.smaller_tiles().words == *words, "flipped by {flip}");
    }
}

/// An image that is too small for tiles of 4 × 4 outputs, beside the definition.
#[test]
fn small_images_have_smaller_tiles() {
    if !pairs::available() {
        return;
    }
    let ([m, channels], side, zero) = ([33, 37], 8, 77u8);
    for (flip, threads) in [(0, 1), (128, 2)] {
        let (pool, op) = (Pool::new(threads), convolution());
        let weight = partly_cut(flip, [m, channels]);
        let rows = rows(&weight, flip, [m, channels], &pool, None);
        let g = op.window.geometry(&[side, side], &[3, 3]).unwrap();
        let plan = rows.plan(&g, channels, threads);
        assert_eq!(rows.winograd.as_ref().map(|rows| rows.shape.size), Some(4));
        assert_eq!(plan.tiling.as_ref().map(|tiling| tiling.size), Some(2));
        let image: Vec<u8> = (0..channels * side * side).map(|i| (i * 7919 % 1009) as u8).collect();
        let (x_shape, y_shape) = ([1, channels, side, side], [1, m, side, side]);
        let x = Tensor::from_slice(&x_shape, &image).unwrap();
        let zero_point = Tensor::from_slice(&[], &[zero]).unwrap();
        let mut y = vec![0i32; m * side * side];
        let len = rows.scratch_len(&plan);
        let scratch = Buffer::unspecified(len).unwrap();
        // SAFETY: the buffer was made for this call, holds `len` bytes and is aligned to 64.
        let cx = unsafe { KernelContext::new(&pool, None).prepared(None, scratch.as_ptr(), len) };
        let inputs = [Some(x.view()), None, Some(zero_point.view())];
        let mut out = TensorViewMut::new(ElementType::I32, &y_shape, bytemuck::cast_slice_mut(&mut y));
        rows.run(&cx, &op, &plan, 0, &inputs, &mut out).unwrap();
        for (i, &sum) in y.iter().enumerate() {
            let [row, line, column] = [i / (side * side), i / side % side, i % side];
            let mut want = 0;
            for tap in 0..9 {
                // Zero points lie around the image.
                let [line, column] = [line + tap / 3, column + tap % 3].map(|at| at.wrapping_sub(1));
                for c in (0..channels).filter(|_| line < side && column < side) {
                    let x = i32::from(image[(c * side + line) * side + column]) - i32::from(zero);
                    want += x * i32::from((weight[(row * channels + c) * 9 + tap] ^ flip) as i8);
                }
            }
            assert_eq!(sum, want, "flipped by {flip}: {row} {line} {column}");
        }
    }
}
