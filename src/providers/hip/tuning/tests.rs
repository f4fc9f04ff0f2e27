//! Choices on a device: all candidates of a problem compute the same, and records are followed.

use std::sync::{Arc, Mutex};

use crate::graph::Attribute;
use crate::hip::blas::{Algorithm, GemmAddresses};
use crate::hip::{HipError, Stream};
use crate::tensor::ElementType;

use super::super::launch::{Addresses, Operand};
use super::super::testing::{both_on, provider, small_integers as numbers};
use super::super::{Given, PlanBuilder, Provider};

const TUNING: [(&str, &str); 2] = [("tunable_op_enable", "1"), ("tunable_op_tuning_enable", "1")];

const TYPES: [ElementType; 4] = [ElementType::F32, ElementType::F16, ElementType::BF16, ElementType::F64];

fn tolerance(ty: ElementType) -> f64 {
    match ty {
        ElementType::F16 => 1e-3,
        ElementType::BF16 => 8e-3,
        _ => 1e-6,
    }
}

/// No candidate computed something else, and something was measured.
fn assert_measured(provider: &Provider, what: &str) {
    let notes: Vec<String> = provider.tuner().take_news().into_iter().map(|note| note.text).collect();
    assert!(notes.iter().any(|text| text.contains(" takes ")), "{what}: {notes:?}");
    let wrong = notes.iter().find(|text| text.contains("wrong") || text.contains("the default is used"));
    assert_eq!(wrong, None, "{what}");
}

#[test]
fn products_agree() {
    let Some(provider) = provider(&TUNING) else { return };
    for ty in TYPES {
        for (a, b) in
            [([2, 70, 600], [2, 600, 130]), ([1, 3, 520], [1, 520, 70]), ([1, 90, 600], [1, 600, 2])]
        {
            let inputs = [numbers(ty, &a), numbers(ty, &b)];
            let what = format!("{ty} {a:?} · {b:?}");
            both_on(&provider, "", "MatMul", 13, &[], &inputs, 1).assert_close(&what, tolerance(ty));
            assert_measured(&provider, &what);
        }
    }
    for ty in TYPES {
        let inputs = [numbers(ty, &[520, 20]), numbers(ty, &[40, 520]), numbers(ty, &[20, 1])];
        let attributes =
            [("transA", Attribute::Int(1)), ("transB", Attribute::Int(1)), ("beta", Attribute::Float(2.0))];
        both_on(&provider, "", "Gemm", 13, &attributes, &inputs, 1).assert_close("Gemm", tolerance(ty));
        assert_measured(&provider, "Gemm");
    }
}

#[test]
fn convolutions_agree() {
    let Some(provider) = provider(&TUNING) else { return };
    for ty in TYPES {
        for (x, w, group) in [([1, 6, 12, 12], [8, 3, 3, 3], 2), ([1, 60, 6, 6], [70, 60, 3, 3], 1)] {
            let inputs = [numbers(ty, &x), numbers(ty, &w), numbers(ty, &w[..1])];
            let attributes = [("group", Attribute::Int(group)), ("pads", Attribute::Ints(vec![1; 4]))];
            let what = format!("{ty} {x:?} {w:?}");
            let both = both_on(&provider, "", "Conv", 22, &attributes, &inputs, 1);
            both.assert_close(&what, tolerance(ty));
            assert_measured(&provider, &what);
        }
    }
    assert_eq!(provider.tuner().text().matches("\nresult conv ").count(), 8);
}

#[test]
fn attentions_agree() {
    let Some(provider) = provider(&TUNING) else { return };
    for ty in [ElementType::F16, ElementType::BF16] {
        for (queries, keys, mask) in
            [([1, 4, 33, 24], [1, 2, 41, 24], false), ([2, 2, 9, 40], [2, 1, 70, 40], true)]
        {
            let mut inputs = vec![numbers(ty, &queries), numbers(ty, &keys), numbers(ty, &keys)];
            if mask {
                inputs.push(numbers(ty, &[1, 2, queries[2], keys[2]]));
            }
            let attributes =
                [("scale", Attribute::Float(0.1)), ("is_causal", Attribute::Int(i64::from(!mask)))];
            let both = both_on(&provider, "", "Attention", 23, &attributes, &inputs, 1);
            both.assert_close(&format!("{ty} {queries:?}"), 2e-2);
            assert_measured(&provider, &format!("{ty} {queries:?}"));
        }
    }
    // Without matrix units there is one way, and nothing to choose.
    let choices = if provider.unit().matrix { 4 } else { 0 };
    assert_eq!(provider.tuner().text().matches("\nresult attention ").count(), choices);
}

#[test]
fn records_are_followed() {
    let Some(first) = provider(&TUNING) else { return };
    let inputs = [numbers(ElementType::F32, &[20, 600]), numbers(ElementType::F32, &[600, 30])];
    let run = |provider: &Arc<Provider>| both_on(provider, "", "MatMul", 13, &[], &inputs, 1);
    run(&first).assert_close("measured", 1e-6);
    let text = first.tuner().text();
    let found = text.lines().last().unwrap().split(' ').nth(3).unwrap();
    for name in ["gemm_f32_large", "gemm_f32_large/2", "gemm_f32_small", "gemm_f32_small/2"] {
        let Some(second) = provider(&TUNING[..1]) else { return };
        let generation = second.tuner().generation();
        assert_eq!(second.tuner().add(&text.replace(found, name), "here"), 1);
        assert!(second.tuner().generation() > generation);
        run(&second).assert_close(name, 1e-6);
        let notes = second.tuner().take_news();
        assert!(notes.iter().all(|note| !note.warning), "{name}: {notes:?}");
        assert!(second.tuner().text().contains(&format!(" {name} ")));
    }
}

/// An algorithm that notes that it ran.
struct Noting(&'static str, Arc<Mutex<Vec<&'static str>>>);

impl Algorithm for Noting {
    fn name(&self) -> &str {
        self.0
    }

    fn workspace(&self) -> usize {
        100
    }

    unsafe fn multiply(&self, at: &GemmAddresses, _stream: &Stream) -> Result<(), HipError> {
        assert!(at.workspace.is_multiple_of(256) && at.c == 0);
        self.1.lock().unwrap().push(self.0);
        Ok(())
    }
}

#[test]
fn operands_that_are_aligned_less_go_another_way() {
    let Some(provider) = provider(&[]) else { return };
    let ran = Arc::new(Mutex::new(Vec::new()));
    let noting = |name| Arc::new(Noting(name, ran.clone())) as Arc<dyn Algorithm>;
    let mut plan = PlanBuilder::new(&provider, Given::All);
    let operands = [Some((Operand::Input(0), 16)), Some((Operand::Input(1), 0)), None, None, None];
    let one =
        |name, plan: &mut PlanBuilder<'_>| plan.library(noting(name), [None; 5], 1, |_| Ok(()), |_| Ok(()));
    plan.library(
        noting("library"),
        operands,
        16,
        |plan| one("rest", plan),
        |plan| {
            one("first", plan)?;
            one("second", plan)
        },
    )
    .unwrap();
    one("last", &mut plan).unwrap();
    let launches = plan.finish().unwrap();
    for (input, wanted) in [
        (4096, &["library", "rest", "last"][..]),
        (4096 + 16, &["library", "rest", "last"]),
        (4096 + 8, &["first", "second", "last"]),
    ] {
        let addresses =
            Addresses { inputs: &[4096, input], outputs: &[], scratch: 64, errors: 0, counters: 0 };
        // SAFETY: nothing uses the addresses.
        unsafe { launches.submit(provider.uploads(), &addresses, &mut Vec::new(), |_| ()).unwrap() };
        assert_eq!(std::mem::take(&mut *ran.lock().unwrap()), wanted, "{input}");
    }
}
