//! Which steps of a decoder's attention may read caches and lengths while the kernel before them still runs.

use super::caches::{Lengths, between_products};
use super::graphs::upload;
use super::on_hip::{on_hip, open_with};
use super::{environment, t};
use crate::model::testing::{ModelBuilder, floats};
use crate::plan::{OutputPlace, ShapedPlan, Signature, StepPlan};
use crate::tensor::ElementType::{F32, I64};
use crate::tensor::{Value, ValueRef};

#[test]
fn only_what_the_kernel_just_before_does_not_write_is_read_early() {
    let Some(options) = on_hip(&[]) else { return };
    for (lengths, expected) in [
        (Lengths::Given, true),
        (Lengths::BeforeTheProduct, true),
        (Lengths::BehindTheProduct, false),
        (Lengths::Reshaped, false),
        (Lengths::FirstKernel, false),
    ] {
        let session = open_with(environment(), &between_products(lengths), &options);
        let device =
            |shape: &[usize]| Value::Tensor(upload(&t(shape, &vec![0.5f32; shape.iter().product()])));
        let counts = Value::Tensor(upload(&t(&[1], &[4i32])));
        let x = device(if lengths == Lengths::FirstKernel { &[1, 1, 64] } else { &[1, 1, 16] });
        let cache = [1, 2, 12, 8];
        let values = [x, counts, t(&[], &[5i32]), device(&cache), device(&cache)];
        let inputs = values.each_ref().map(ValueRef::Value);
        let signature = Signature { inputs: &inputs, outputs: &[OutputPlace::Device; 3] };
        let plan = ShapedPlan::new(&session.opened.program, signature, &session.pool).unwrap();
        let early = plan.steps.iter().find_map(|step| match step {
            StepPlan::Device(step) => step.launches.reads_caches_early(),
            _ => None,
        });
        // A product that lets attention start before it has waited itself settles nothing.
        let mut before = plan.steps.iter().map_while(|step| match step {
            StepPlan::Device(step) => {
                step.launches.reads_caches_early().is_none().then_some(Some(&step.launches))
            }
            _ => Some(None),
        });
        let settles = before.all(|launches| launches.is_none_or(|launches| launches.settles_others()));
        let expected = expected && (settles || lengths != Lengths::BeforeTheProduct);
        assert_eq!(early, Some(expected), "{lengths:?}");
    }
}

/// Rows of a constant table are read before the kernel before has ended, and the next one may start meanwhile, where that kernel
/// does not write their numbers.
#[test]
fn rows_of_tokens_are_read_early_where_their_numbers_are_there() {
    let Some(options) = on_hip(&[]) else { return };
    for (numbers, is_early) in [("given", true), ("made", false)] {
        let model = ModelBuilder::new()
            .input("x", F32, &["4"])
            .input("given", I64, &["3"])
            .initializer(floats("table", &[5, 8], &[0.5; 40]))
            .node("Abs", &["x"], &["a"])
            .node("Abs", &["given"], &["made"])
            .node("Gather", &["table", numbers], &["rows"])
            .output("a")
            .output("made")
            .output("rows");
        let session = open_with(environment(), &model, &options);
        let values =
            [Value::Tensor(upload(&t(&[4], &[1f32; 4]))), Value::Tensor(upload(&t(&[3], &[4i64, 0, 2])))];
        let inputs = values.each_ref().map(ValueRef::Value);
        let signature = Signature { inputs: &inputs, outputs: &[OutputPlace::Device; 3] };
        let plan = ShapedPlan::new(&session.opened.program, signature, &session.pool).unwrap();
        let settle: Vec<bool> = plan
            .steps
            .iter()
            .filter_map(|step| match step {
                StepPlan::Device(step) => Some(step.launches.settles_others()),
                _ => None,
            })
            .collect();
        assert_eq!(settle, [true, true, !is_early], "{numbers}");
    }
}
