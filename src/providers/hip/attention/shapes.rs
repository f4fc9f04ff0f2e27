//! An attention from the word that stands for it in records of tuning.

use crate::ops::OpError;

use super::super::PlanBuilder;
use super::super::launch::Operand;
use super::super::tuning::{Parts, element_type, fits, number, numbers};
use super::heads::Heads;
use super::scores::{FirstQuery, MaskTensor, Problem};

/// Appends the launches of the attention that a word of `Problem::key` stands for, in the way that tuning chooses.
/// `None` for any other word.
pub(in super::super) fn plan(word: &str, plan: &mut PlanBuilder<'_>) -> Option<Result<(), OpError>> {
    Some(read(word)?.plan(plan))
}

fn read(word: &str) -> Option<Problem> {
    let mut parts = Parts::new(word);
    let ty = parts.element_type()?;
    let batch = number(parts.after("batch")?)?;
    let mut heads = |prefix: &str, at: Operand| -> Option<Heads> {
        let (sizes, strides) = parts.after(prefix)?.split_once(':')?;
        let [heads, rows, size] = numbers(sizes, 'x', Some(3))?.try_into().ok()?;
        let strides = numbers(strides, ':', Some(3))?.try_into().ok()?;
        Some(Heads { at, offset: 0, heads, rows, size, strides })
    };
    let (q, k) = (heads("q", Operand::Input(0))?, heads("k", Operand::Input(1))?);
    let (v, y) = (heads("v", Operand::Input(2))?, heads("y", Operand::Output(0))?);
    let mask = match parts.after("mask-") {
        Some(text) => {
            let (ty, strides) = text.split_once(':')?;
            let strides: [usize; 3] = numbers(strides, ':', Some(3))?.try_into().ok()?;
            let strides = strides.map(|stride| stride as i64);
            Some(MaskTensor { at: Operand::Input(3), ty: element_type(ty)?, strides, keys: k.rows })
        }
        None => None,
    };
    let causal = parts.after("causal").is_some();
    let mut window = [None; 2];
    for (side, name) in window.iter_mut().zip(["left", "right"]) {
        if let Some(text) = parts.after(name) {
            *side = Some(number(text)?);
        }
    }
    let softcap = if parts.after("softcap").is_some() { 30.0 } else { 0.0 };
    // The queries are the last of the keys, as those of a sequence that goes on are.
    let first = FirstQuery::At(k.rows.saturating_sub(q.rows) as isize);
    let there = [batch, q.heads, q.rows, q.size, k.heads, k.rows, v.size].into_iter().all(|size| size > 0);
    let alike = there && q.heads.is_multiple_of(k.heads) && [v.heads, v.rows] == [k.heads, k.rows];
    let results = [y.heads, y.rows, y.size] == [q.heads, q.rows, v.size] && k.size == q.size;
    let fitting = [q, k, v, y].iter().all(|h| fits([batch, h.heads, h.rows, h.size]))
        && fits([batch, q.heads, q.rows, k.rows]);
    let scale = 1.0 / (q.size.max(1) as f32).sqrt();
    let problem = Problem {
        ty,
        batch,
        q,
        k,
        v,
        y,
        scale,
        softcap,
        causal,
        window,
        first,
        lengths: None,
        mask,
        sink: None,
        kept: None,
    };
    (alike && results && fitting && problem.key() == word).then_some(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back() {
        let heads = "q4x33x24:3168:792:24_k2x41x24:1968:984:24_v2x41x24:1968:984:24_y4x33x24:3168:792:24";
        for word in [
            format!("float16_batch1_{heads}"),
            format!("bfloat16_batch2_{heads}_mask-bool:0:1353:41_causal"),
            format!("float16_batch1_{heads}_mask-float:0:0:41_left5_right0_softcap"),
        ] {
            assert_eq!(read(&word).map(|problem| problem.key()), Some(word));
        }
        for word in [
            String::new(),
            format!("float16_batch0_{heads}"),
            format!("float16_batch1_{heads}_more"),
            format!("float16_batch1_{}", heads.replace("k2x", "k3x")),
            format!("float16_batch1_{}", heads.replace("y4x33", "y4x32")),
            format!("float16_batch1_{heads}_mask-text:0:0:41"),
        ] {
            assert!(read(&word).is_none(), "{word}");
        }
    }
}
