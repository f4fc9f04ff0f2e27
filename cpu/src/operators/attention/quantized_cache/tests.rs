use super::super::heads::head_strides;
use super::*;
use crate::tensor::f16;

/// What a number becomes by its format's definition: what is kept, and that as a number again.
fn by_definition(format: Format, x: f32, scale: f32) -> (u8, f32) {
    let scaled = x / scale;
    match format {
        Format::I8 => {
            let kept = scaled.round_ties_even().clamp(-128.0, 127.0) as i8;
            (kept as u8, f32::from(kept) * scale)
        }
        Format::U4 => {
            let kept = scaled.round_ties_even().clamp(-8.0, 7.0) as i8;
            ((kept + 8) as u8, f32::from(kept) * scale)
        }
        Format::F8 => {
            let kept = F8E4M3FN::from_f32(scaled, true);
            (kept.0, kept.to_f32() * scale)
        }
    }
}

fn check<T: Store<Compute = f32>>(format: Format, size: usize, per_channel: bool) {
    let (batch, kv_heads, rows, capacity, threads) = (2, 3, 2, 7, 2);
    let (before, width) = ([4, 1], format.bytes(size));
    let count = batch * kv_heads * rows * size;
    let new: Vec<T> = (0..count).map(|i| T::store((i % 37) as f32 * 0.31 - 5.5)).collect();
    let scales: Vec<f32> =
        (0..if per_channel { kv_heads * size } else { 1 }).map(|i| 0.05 + (i % 5) as f32 * 0.3).collect();
    let past: Vec<u8> = (0..batch * kv_heads * 5 * width).map(|i| (i * 11 % 120) as u8).collect();
    let quantizer = Quantizer { format, scales: &scales, kv_heads, size };
    let fresh = || Heads { data: &new[..], strides: head_strides(4, kv_heads, rows, size) };
    let pool = Pool::new(threads);
    let first = |sample: usize| before[sample];

    let mut cache = vec![0xee; batch * kv_heads * capacity * width];
    let mut places = vec![0xee; cache.len()];
    let kept = quantizer.put(&pool, (fresh(), rows), Kept::From(&past, 5), &first, capacity, &mut cache);
    quantizer.put(&pool, (fresh(), rows), Kept::InPlace, &first, capacity, &mut places);
    for plane in 0..batch * kv_heads {
        let (sample, head) = (plane / kv_heads, plane % kv_heads);
        let mut numbers = vec![9.0f32; capacity * size];
        kept.load([sample, head, 0], &mut numbers);
        for row in 0..capacity {
            let told = format!("{format:?} of {size}, plane {plane}, row {row}");
            let at = (plane * capacity + row) * width..(plane * capacity + row + 1) * width;
            let (own, place) = (&kept.bytes[at.clone()], &places[at]);
            match row.checked_sub(before[sample]) {
                None => {
                    assert_eq!(own, &past[(plane * 5 + row) * width..][..width], "{told}");
                    assert!(place.iter().all(|x| *x == 0xee), "{told}");
                }
                Some(new_row) if new_row < rows => {
                    assert_eq!(own, place, "{told}");
                    for i in 0..size {
                        let x = new[(plane * rows + new_row) * size + i].load();
                        let scale = scales[if per_channel { head * size + i } else { 0 }];
                        let (want, number) = by_definition(format, x, scale);
                        let found = match format {
                            Format::U4 => own[i / 2] >> (i % 2 * 4) & 15,
                            _ => own[i],
                        };
                        assert_eq!((found, numbers[row * size + i]), (want, number), "{told}, {i}");
                    }
                }
                Some(_) => assert!(own.iter().all(|x| *x == 0) && place.iter().all(|x| *x == 0xee), "{told}"),
            }
        }
    }
}

#[test]
fn rows_are_kept_and_read() {
    for format in [Format::I8, Format::U4, Format::F8] {
        for (size, per_channel) in [(2, false), (10, true), (64, false), (70, true)] {
            check::<f32>(format, size, per_channel);
            check::<f16>(format, size, per_channel);
        }
    }
}
