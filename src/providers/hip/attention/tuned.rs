//! The two ways to compute attention, of which tuning finds the faster: in one launch by tiles of many rows, or by the
//! kernel for few rows, or else as products with a softmax between them.

use crate::ops::OpError;
use crate::tensor::ElementType;

use super::super::PlanBuilder;
use super::super::launch::Operand;
use super::super::tuning::{self, Span, Trial};
use super::flash::FlashKernel;
use super::heads::Heads;
use super::scores::{MaskTensor, Problem};

impl Problem {
    /// Appends the launches in the way that tuning chooses.
    pub(super) fn plan_tuned(&self, plan: &mut PlanBuilder<'_>, flash: FlashKernel) -> Result<(), OpError> {
        const WAYS: [&str; 2] = ["flash", "scores"];
        let group = self.q.heads / self.k.heads.max(1);
        // The default comes first.
        let in_order = |way: usize| if self.has_enough_rows() { way } else { 1 - way };
        let plan_way = |problem: &Problem, way: usize, plan: &mut PlanBuilder<'_>| match in_order(way) {
            0 => problem.plan_flash(plan, flash, group),
            _ => problem.plan_few_or_scores(plan, group),
        };
        let chosen = match self.trial() {
            Some((trial, own)) => plan.provider.tuner().choose(
                plan.provider,
                &tuning::Problem {
                    operator: "attention",
                    key: self.key(),
                    candidates: &|_| (0..2).map(|way| WAYS[in_order(way)].to_owned()).collect(),
                    trial,
                    plan: &|way, plan| plan_way(&own, way, plan),
                },
            ),
            None => 0,
        };
        plan_way(self, chosen, plan)
    }

    /// The operands of a trial, and the problem on them. `None` where made-up numbers are no valid operand:
    /// lengths.
    fn trial(&self) -> Option<(Trial, Problem)> {
        if self.lengths.is_some() || self.kept.is_some() {
            return None;
        }
        let span = |heads: &Heads| {
            let last = [self.batch, heads.heads, heads.rows].into_iter().zip(heads.strides);
            let before: usize = last.map(|(n, stride)| n.saturating_sub(1) * stride).sum();
            Span { ty: self.ty, elements: before + heads.size }
        };
        let mask = match self.mask {
            None => Span { ty: self.ty, elements: 0 },
            Some(mask) => {
                let last = [self.batch, self.q.heads, self.q.rows].into_iter().zip(mask.strides);
                let before: usize =
                    last.map(|(n, s)| Some((n - 1) * usize::try_from(s).ok()?)).sum::<Option<_>>()?;
                Span { ty: mask.ty, elements: before + mask.keys }
            }
        };
        let own = Problem {
            q: Heads { at: Operand::Input(0), offset: 0, ..self.q },
            k: Heads { at: Operand::Input(1), offset: 0, ..self.k },
            v: Heads { at: Operand::Input(2), offset: 0, ..self.v },
            y: Heads { at: Operand::Output(0), offset: 0, ..self.y },
            mask: self.mask.map(|mask| MaskTensor { at: Operand::Input(3), ..mask }),
            ..*self
        };
        Some((
            Trial { inputs: vec![span(&self.q), span(&self.k), span(&self.v), mask], output: span(&self.y) },
            own,
        ))
    }

    /// Everything that decides how fast the ways are, as a word.
    pub(super) fn key(&self) -> String {
        let Problem { q, k, v, y, .. } = self;
        let mut key = format!("{}_batch{}", self.ty, self.batch);
        for (name, heads) in [("q", q), ("k", k), ("v", v), ("y", y)] {
            let [batch, head, row] = heads.strides;
            let Heads { heads, rows, size, .. } = heads;
            key += &format!("_{name}{heads}x{rows}x{size}:{batch}:{head}:{row}");
        }
        if let Some(mask) = self.mask {
            let [batch, head, row] = mask.strides;
            let ty: ElementType = mask.ty;
            key += &format!("_mask-{ty}:{batch}:{head}:{row}");
        }
        if self.causal {
            key += "_causal";
        }
        for (name, window) in ["left", "right"].iter().zip(self.window) {
            key += &window.map_or_else(String::new, |n| format!("_{name}{n}"));
        }
        if self.softcap != 0.0 {
            key += "_softcap";
        }
        key
    }
}
