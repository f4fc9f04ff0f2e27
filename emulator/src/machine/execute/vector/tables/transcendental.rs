//! Reciprocals, roots, exponentials, logarithms, sines. The hardware gives them to about one unit in the last place;
//! here they are rounded from better ones.

use std::f64::consts::TAU;

use super::super::kernel::map1;
use super::super::types::F16;
use super::Row;
use super::powers::{exp2, log2};
use super::rounding::flush;

pub fn rows() -> Vec<Row> {
    [singles(), halves(), doubles()].concat()
}

/// Subnormal numbers are flushed, going in and coming out.
fn singles() -> Vec<Row> {
    vec![
        ("v_rcp_f32", map1(|a: f32| flush(1.0 / flush(a)))),
        ("v_rcp_iflag_f32", map1(|a: f32| flush(1.0 / flush(a)))),
        ("v_s_rcp_f32", map1(|a: f32| flush(1.0 / flush(a)))),
        ("v_rsq_f32", map1(reciprocal_root)),
        ("v_s_rsq_f32", map1(reciprocal_root)),
        ("v_sqrt_f32", map1(|a: f32| flush(a).sqrt())),
        ("v_s_sqrt_f32", map1(|a: f32| flush(a).sqrt())),
        ("v_exp_f32", map1(|a: f32| flush(exp2(a)))),
        ("v_s_exp_f32", map1(|a: f32| flush(exp2(a)))),
        ("v_log_f32", map1(|a: f32| log2(flush(a)))),
        ("v_s_log_f32", map1(|a: f32| log2(flush(a)))),
        ("v_sin_f32", map1(|a: f32| (TAU * f64::from(a - a.floor())).sin() as f32)),
        ("v_cos_f32", map1(|a: f32| (TAU * f64::from(a - a.floor())).cos() as f32)),
        ("v_prng_b32", map1(|a: u32| a << 1 ^ if a >> 31 != 0 { 0xc5 } else { 0 })),
    ]
}

fn halves() -> Vec<Row> {
    vec![
        ("v_rcp_f16", map1(|a: F16| F16(1.0 / a.0))),
        ("v_rsq_f16", map1(|a: F16| F16(1.0 / a.0.sqrt()))),
        ("v_sqrt_f16", map1(|a: F16| F16(a.0.sqrt()))),
        ("v_exp_f16", map1(|a: F16| F16(exp2(a.0)))),
        ("v_log_f16", map1(|a: F16| F16(log2(a.0)))),
        ("v_s_rcp_f16", map1(|a: F16| F16(1.0 / a.0))),
        ("v_s_rsq_f16", map1(|a: F16| F16(1.0 / a.0.sqrt()))),
        ("v_s_sqrt_f16", map1(|a: F16| F16(a.0.sqrt()))),
        ("v_s_exp_f16", map1(|a: F16| F16(exp2(a.0)))),
        ("v_s_log_f16", map1(|a: F16| F16(log2(a.0)))),
        ("v_sin_f16", map1(|a: F16| F16((TAU * f64::from(a.0)).sin() as f32))),
        ("v_cos_f16", map1(|a: F16| F16((TAU * f64::from(a.0)).cos() as f32))),
    ]
}

fn doubles() -> Vec<Row> {
    vec![
        ("v_rcp_f64", map1(|a: f64| 1.0 / a)),
        ("v_rsq_f64", map1(|a: f64| 1.0 / a.sqrt())),
        ("v_sqrt_f64", map1(f64::sqrt)),
    ]
}

fn reciprocal_root(a: f32) -> f32 {
    (1.0 / f64::from(flush(a)).sqrt()) as f32
}
