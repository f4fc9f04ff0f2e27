//! NonMaxSuppression.

use crate::ops::OpError;
use crate::ops::detection::NonMaxSuppression;
use crate::tensor::{Tensor, Value, ValueRef};

use crate::kernel::{CpuKernel, Entry, KernelContext, ValueKernel};
use crate::loops::order::Ordered;

pub(super) const KERNELS: &[Entry] = &[Entry::new("NonMaxSuppression", |node| {
    Ok(CpuKernel::Value(Box::new(Suppress { center_point: node.op::<NonMaxSuppression>().center_point })))
})];

struct Suppress {
    center_point: bool,
}

/// Corners with the lower ones first.
#[derive(Clone, Copy)]
struct Box2 {
    x: (f32, f32),
    y: (f32, f32),
}

impl Box2 {
    fn new(b: [f32; 4], center_point: bool) -> Self {
        let sorted = |a: f32, b: f32| (a.min(b), a.max(b));
        if center_point {
            let [x, y, w, h] = b;
            Box2 { x: (x - w / 2.0, x + w / 2.0), y: (y - h / 2.0, y + h / 2.0) }
        } else {
            Box2 { x: sorted(b[1], b[3]), y: sorted(b[0], b[2]) }
        }
    }

    fn area(self) -> f32 {
        (self.x.1 - self.x.0) * (self.y.1 - self.y.0)
    }

    /// Intersection over union; 0 for boxes without area.
    fn overlap(self, other: Box2) -> f32 {
        let width = self.x.1.min(other.x.1) - self.x.0.max(other.x.0);
        let height = self.y.1.min(other.y.1) - self.y.0.max(other.y.0);
        if width <= 0.0 || height <= 0.0 {
            return 0.0;
        }
        let common = width * height;
        let union = self.area() + other.area() - common;
        if self.area() <= 0.0 || other.area() <= 0.0 || union <= 0.0 { 0.0 } else { common / union }
    }
}

impl ValueKernel for Suppress {
    fn run(&self, cx: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let view = |i: usize| inputs.get(i).copied().flatten().and_then(ValueRef::view);
        let missing = || OpError::Data("boxes and scores are needed".to_owned());
        let (boxes, scores) = (view(0).ok_or_else(missing)?, view(1).ok_or_else(missing)?);
        let (&[batches, count, 4], &[score_batches, classes, score_count]) = (boxes.shape(), scores.shape())
        else {
            return Err(OpError::Data(format!(
                "boxes of shape {:?}, scores of {:?}",
                boxes.shape(),
                scores.shape()
            )));
        };
        if batches != score_batches || count != score_count {
            return Err(OpError::Data(format!(
                "boxes of shape {:?}, scores of {:?}",
                boxes.shape(),
                scores.shape()
            )));
        }
        let most = view(2).and_then(|v| v.slice::<i64>().first().copied()).unwrap_or(0).max(0) as usize;
        let threshold = view(3).and_then(|v| v.slice::<f32>().first().copied()).unwrap_or(0.0);
        let least = view(4).and_then(|v| v.slice::<f32>().first().copied());
        let boxes: Vec<Box2> =
            boxes.slice::<f32>().as_chunks().0.iter().map(|&b| Box2::new(b, self.center_point)).collect();
        let scores = scores.slice::<f32>();
        let mut selected: Vec<i64> = Vec::new();
        for batch in 0..batches {
            let boxes = &boxes[batch * count..(batch + 1) * count];
            for class in 0..classes {
                if cx.cancelled() {
                    return Err(OpError::Cancelled);
                }
                let scores = &scores[(batch * classes + class) * count..][..count];
                for i in best(boxes, scores, most, threshold, least) {
                    selected.extend([batch as i64, class as i64, i as i64]);
                }
            }
        }
        Ok(vec![Value::Tensor(Tensor::from_slice(&[selected.len() / 3, 3], &selected)?)])
    }
}

/// The boxes of one class that are kept, best first.
fn best(boxes: &[Box2], scores: &[f32], most: usize, threshold: f32, least: Option<f32>) -> Vec<usize> {
    let mut order: Vec<usize> =
        (0..boxes.len()).filter(|&i| least.is_none_or(|least| scores[i] > least)).collect();
    // Stable: of equal scores the first box is tried first.
    order.sort_by(|&a, &b| scores[b].order(&scores[a]));
    let mut kept: Vec<usize> = Vec::new();
    for i in order {
        if kept.len() >= most {
            break;
        }
        if kept.iter().all(|&k| boxes[i].overlap(boxes[k]) <= threshold) {
            kept.push(i);
        }
    }
    kept
}
