//! The memory that values of a run share: who has which part of the block, from which step to which. Below it what is held
//! of a GPU.

use svg::node::element::{Group, Line, Path};

use super::arena::Arena;
use super::draw::{self, round, shortened, text, title};
use super::plan::Plan;
use crate::text::bytes;

const LEFT: f64 = 90.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 64.0;
/// The curve of what is needed at each step, and the space below it.
const CURVE: f64 = 80.0;
const SPACE: f64 = 40.0;
const BLOCK: f64 = 420.0;

/// A part of a block over steps.
struct Span {
    name: String,
    first: usize,
    last: usize,
    offset: u64,
    bytes: u64,
    scratch: bool,
}

/// Draws the blocks of a plan, and a GPU's memory; an error when there is neither.
pub fn memory(name: &str, plan: &Plan, arena: Option<&Arena>) -> Result<String, String> {
    let sides = [(false, "host", plan.host_block), (true, "device", plan.device_block)];
    let used: Vec<_> = sides.into_iter().filter(|(_, _, size)| *size > 0).collect();
    if used.is_empty() && arena.is_none() {
        return Err("the values of this run share no block of memory: they are inputs, outputs and constants, or their \
                    shapes are known only while running"
            .to_owned());
    }
    let steps = plan.steps.len().max(1);
    let step = (1400.0 / steps as f64).clamp(1.5, 40.0);
    let width = (LEFT + step * steps as f64 + RIGHT).max(640.0);
    let panel = TOP + CURVE + SPACE + BLOCK + SPACE;
    let blocks = panel * used.len() as f64;
    let mut picture = draw::document(width, blocks + arena.map_or(0.0, Arena::height));
    for (at, (on_device, side, size)) in used.into_iter().enumerate() {
        let spans = spans(plan, on_device);
        let heading = format!("{name}, memory of the {side}");
        let group = panel_of(&heading, plan, &spans, size, step);
        picture = picture.add(at_height(group, panel * at as f64));
    }
    if let Some(arena) = arena {
        picture = picture.add(at_height(arena.draw(name), blocks));
    }
    Ok(picture.to_string())
}

fn at_height(group: Group, y: f64) -> Group {
    group.set("transform", format!("translate(0 {})", round(y)))
}

fn spans(plan: &Plan, on_device: bool) -> Vec<Span> {
    let last_step = plan.steps.len().saturating_sub(1);
    let values = plan.values.iter().filter(|value| value.on_device == on_device).filter_map(|value| {
        let memory = value.memory.as_ref()?;
        Some(Span {
            name: format!("{} {}", value.name, value.ty),
            first: memory.first.min(last_step),
            last: memory.last.min(last_step),
            offset: memory.offset,
            bytes: memory.bytes,
            scratch: false,
        })
    });
    let scratch = plan.steps.iter().enumerate().filter_map(|(at, step)| {
        let scratch = step.scratch.as_ref().filter(|scratch| scratch.on_device == on_device)?;
        Some(Span {
            name: format!("temporary memory of {} ({})", step.node, step.operator),
            first: at,
            last: at,
            offset: scratch.offset,
            bytes: scratch.bytes,
            scratch: true,
        })
    });
    values.chain(scratch).filter(|span| span.bytes > 0).collect()
}

/// How much is needed at each step.
fn needed(spans: &[Span], steps: usize) -> Vec<u64> {
    let mut needed = vec![0u64; steps];
    for span in spans {
        needed[span.first..=span.last].iter_mut().for_each(|sum| *sum += span.bytes);
    }
    needed
}

fn panel_of(heading: &str, plan: &Plan, spans: &[Span], size: u64, step: f64) -> Group {
    let steps = plan.steps.len().max(1);
    let needed = needed(spans, steps);
    let peak = needed.iter().copied().max().unwrap_or(0);
    let at = needed.iter().position(|&bytes| bytes == peak).unwrap_or(0);
    let node = plan.steps.get(at).map_or("", |step| step.node.as_str());
    let node = shortened(node, 60);
    let told = format!("block of {}; peak {} at step {at}, node {node}", bytes(size), bytes(peak));
    let x = |step_number: usize| LEFT + step * step_number as f64;
    let right = x(steps);
    let mut group = Group::new()
        .add(text(heading, 20.0, 22.0, 14, draw::TEXT))
        .add(text(&told, 20.0, 42.0, 12, draw::HOT))
        .add(text("needed", 20.0, TOP + 12.0, 11, draw::FAINT));

    // What is needed at each step.
    let bottom = TOP + CURVE;
    let mut data = format!("M{},{}", round(LEFT), round(bottom));
    for (number, &bytes) in needed.iter().enumerate() {
        let y = round(bottom - CURVE * bytes as f64 / peak.max(1) as f64);
        data += &format!(" L{},{y} L{},{y}", round(x(number)), round(x(number + 1)));
    }
    data += &format!(" L{},{} z", round(right), round(bottom));
    group = group.add(Path::new().set("d", data).set("fill", draw::CPU).set("stroke", draw::FAINT));

    // The block.
    let top = bottom + SPACE;
    let y = |offset: u64| top + BLOCK * offset as f64 / size as f64;
    group = group
        .add(
            draw::rectangle(LEFT, top, right - LEFT, BLOCK).set("fill", "#f6f7f9").set("stroke", draw::FAINT),
        )
        .add(text("0 B", 20.0, top + 10.0, 11, draw::FAINT))
        .add(text(&bytes(size), 20.0, top + BLOCK, 11, draw::FAINT))
        .add(text("step 0", LEFT, top + BLOCK + 16.0, 11, draw::FAINT))
        .add(
            text(&(steps - 1).to_string(), right, top + BLOCK + 16.0, 11, draw::FAINT)
                .set("text-anchor", "end"),
        );
    for (number, span) in spans.iter().enumerate() {
        let (left, width) = (x(span.first), step * (span.last - span.first + 1) as f64);
        let (high, height) = (y(span.offset), BLOCK * span.bytes as f64 / size as f64);
        let fill = if span.scratch { "#b9c0c8" } else { colour(number) };
        let about = format!(
            "{}\n{}, from byte {}, steps {} to {}",
            span.name,
            bytes(span.bytes),
            span.offset,
            span.first,
            span.last
        );
        let mut part = Group::new().add(title(&about)).add(
            draw::rectangle(left, high, width, height.max(0.5))
                .set("fill", fill)
                .set("stroke", "#ffffff")
                .set("stroke-width", 0.5),
        );
        let room = (width / 6.0) as usize;
        if room >= 8 && height >= 12.0 {
            let label = shortened(&span.name, room);
            part = part.add(text(&label, left + 3.0, high + height / 2.0 + 4.0, 10, draw::TEXT));
        }
        group = group.add(part);
    }

    let middle = round(x(at) + step / 2.0);
    let mark = Line::new()
        .set("x1", middle)
        .set("x2", middle)
        .set("y1", round(TOP - 6.0))
        .set("y2", round(top + BLOCK))
        .set("stroke", draw::HOT)
        .set("stroke-dasharray", "4 3");
    group.add(mark.set("id", format!("peak-{size}")))
}

/// Colours that differ between neighbours, the same in each picture.
const COLOURS: [&str; 8] =
    ["#a6cee3", "#b2df8a", "#fdbf6f", "#cab2d6", "#fb9a99", "#ffff99", "#9ad5c4", "#e5c494"];

fn colour(number: usize) -> &'static str {
    COLOURS[number % COLOURS.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pictures::{Memory, PlanStep, PlanValue, Scratch};

    fn plan() -> Plan {
        let step = |node: &str, scratch: Option<Scratch>| PlanStep {
            node: node.to_owned(),
            scratch,
            ..PlanStep::default()
        };
        let value = |name: &str, offset, bytes, first, last| PlanValue {
            name: name.to_owned(),
            ty: "float[4]".to_owned(),
            memory: Some(Memory { offset, bytes, first, last }),
            ..PlanValue::default()
        };
        Plan {
            host_block: 256,
            steps: vec![
                step("a", None),
                step("b", Some(Scratch { on_device: false, offset: 128, bytes: 64 })),
                step("c", None),
            ],
            values: vec![value("x", 0, 64, 0, 1), value("y", 64, 64, 1, 2), PlanValue::default()],
            ..Plan::default()
        }
    }

    #[test]
    fn the_peak_is_where_most_is_needed() {
        assert_eq!(needed(&spans(&plan(), false), 3), [64, 192, 64]);
        assert!(spans(&plan(), true).is_empty());
        let picture = memory("model", &plan(), None).unwrap();
        for part in [
            "block of 256 B; peak 192 B at step 1, node b",
            "temporary memory of b",
            "x float[4]",
            "id=\"peak-256\"",
        ] {
            assert!(picture.contains(part), "{part}: {picture}");
        }
        assert_eq!(picture.matches("<title>").count(), 3);
        assert_eq!(picture, memory("model", &plan(), None).unwrap());
    }

    #[test]
    fn without_a_block_there_is_no_picture() {
        assert!(memory("model", &Plan::default(), None).unwrap_err().contains("share no block"));
        assert!(
            memory("model", &Plan::default(), Some(&Arena::default())).unwrap().contains("held of device 0")
        );
    }
}
