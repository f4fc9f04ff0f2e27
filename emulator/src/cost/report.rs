//! Many launches: what each kernel takes, and why.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::machine::count::LaunchCounts;

use super::cards::Card;
use super::predict::{Bound, Settings, predict};

/// Predictions for all kernels of a file of counters.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub card: String,
    /// Says that these are no measurements.
    pub kind: &'static str,
    /// In µs.
    pub predicted_us: f64,
    /// Those that take longest first.
    pub kernels: Vec<Row>,
}

/// A kernel.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub kernel: String,
    pub calls: u64,
    pub predicted_us: f64,
    /// What limits most of its time, and which part of its time that limit is.
    pub bound: Bound,
    pub bound_share: f64,
    /// The counter behind the bound, with its value.
    pub counter: String,
    /// The part of the time for which each unit is busy.
    pub busy: BTreeMap<&'static str, f64>,
    pub waves_per_simd: u32,
}

/// How many kernels are shown as the worst.
const WORST: usize = 5;

#[derive(Default)]
struct Sum {
    calls: u64,
    time: f64,
    parts: [f64; 9],
    by_bound: BTreeMap<Bound, f64>,
    longest: Option<(f64, LaunchCounts)>,
}

impl Report {
    /// From lines of JSON, as launches wrote them. An error names the line.
    pub fn new(lines: &str, card: &Card, settings: &Settings) -> Result<Report, String> {
        let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
        for (number, line) in lines.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let counts: LaunchCounts = serde_json::from_str(line)
                .map_err(|error| format!("line {}: no counters of a launch: {error}", number + 1))?;
            let prediction = predict(&counts, card, settings)?;
            let sum = sums.entry(counts.kernel.clone()).or_default();
            sum.calls += 1;
            sum.time += prediction.time;
            *sum.by_bound.entry(prediction.bound).or_default() += prediction.time;
            for (total, part) in sum.parts.iter_mut().zip(prediction.parts) {
                *total += part;
            }
            if sum.longest.as_ref().is_none_or(|(time, _)| prediction.time > *time) {
                sum.longest = Some((prediction.time, counts));
            }
        }
        let mut kernels: Vec<Row> = sums.into_iter().filter_map(|(name, sum)| row(name, sum)).collect();
        kernels.sort_by(|a, b| b.predicted_us.total_cmp(&a.predicted_us));
        let predicted_us = kernels.iter().map(|row| row.predicted_us).sum();
        Ok(Report { card: card.title.to_owned(), kind: "prediction", predicted_us, kernels })
    }

    /// A table, and the worst kernels with what they spend their time on.
    pub fn text(&self) -> String {
        let mut text = format!("Predicted for {}, not measured: {:.1} us\n", self.card, self.predicted_us);
        text += &format!(
            "{:>7} {:>12} {:>6}  {:<14} {:>5}  {:<44} {}\n",
            "calls", "predicted us", "share", "bound", "part", "kernel", "counter"
        );
        for row in &self.kernels {
            let share = 100.0 * row.predicted_us / self.predicted_us.max(f64::MIN_POSITIVE);
            text += &format!(
                "{:>7} {:>12.1} {:>5.1}%  {:<14} {:>4.0}%  {:<44} {}\n",
                row.calls,
                row.predicted_us,
                share,
                row.bound.text(),
                100.0 * row.bound_share,
                row.kernel,
                row.counter
            );
        }
        text += "\nThe worst, by predicted time:\n";
        for row in self.kernels.iter().take(WORST) {
            let busy: Vec<String> =
                row.busy.iter().map(|(name, part)| format!("{name} {:.0}%", 100.0 * part)).collect();
            text += &format!(
                "  {}: {} waves of a SIMD; busy: {}\n",
                row.kernel,
                row.waves_per_simd,
                busy.join(", ")
            );
        }
        text
    }
}

fn row(kernel: String, sum: Sum) -> Option<Row> {
    let (_, counts) = sum.longest?;
    let (&bound, _) = sum.by_bound.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
    let busy: BTreeMap<&'static str, f64> =
        Bound::ALL.into_iter().zip(sum.parts).map(|(bound, part)| (bound.text(), part / sum.time)).collect();
    Some(Row {
        kernel,
        calls: sum.calls,
        predicted_us: sum.time,
        bound,
        bound_share: busy.get(bound.text()).copied().unwrap_or(0.0),
        counter: counter(bound, &counts),
        busy,
        waves_per_simd: counts.occupancy.waves_per_simd,
    })
}

/// The counter that a bound is made of, of the longest launch.
fn counter(bound: Bound, counts: &LaunchCounts) -> String {
    let memory = &counts.memory;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    match bound {
        Bound::Matrix => format!("{} matrix cycles", counts.matrix_cycles),
        Bound::Vector => {
            let vector = counts.instructions.iter().filter(|(class, _)| class.is_vector_alu());
            match vector.max_by_key(|(_, count)| **count) {
                Some((class, count)) => format!("{count} instructions {class:?}"),
                None => "no vector instructions".to_owned(),
            }
        }
        Bound::Scalar => {
            format!("{} scalar instructions", counts.instructions_of(crate::machine::count::Class::ScalarAlu))
        }
        Bound::Lds => {
            format!("{} LDS cycles, {} of them conflicts", counts.lds.cycles, counts.lds.conflict_cycles)
        }
        Bound::NearCache => {
            format!("{} cycles, {:.2} of the bytes asked for", memory.near_cycles, counts.coalescing())
        }
        Bound::L2 => {
            format!("{:.1} MiB to and from the L2", mib(memory.l2_read_bytes + memory.l2_written_bytes))
        }
        Bound::LastCache => {
            format!("{:.1} MiB behind the L2", mib(memory.fill_read_bytes + memory.fill_written_bytes))
        }
        Bound::Memory => {
            format!("{:.1} MiB of memory", mib(memory.memory_read_bytes + memory.memory_written_bytes))
        }
        Bound::Latency => format!(
            "{} workgroups of {:.0} cycles, {} at a time",
            counts.workgroups, counts.alone.cycles, counts.occupancy.workgroups_per_unit
        ),
    }
}
