//! The graph after optimisation: its nodes with operators, shapes and providers, and how long each takes.

use svg::node::element::{Definitions, Group, Marker, Path};

use super::draw::{self, round, shortened, text, title};
use super::layers::{Nodes, Placed};
use super::plan::{Plan, PlanStep};
use super::times::Times;
use crate::text::seconds;

/// Characters of a line in a box, and what one takes.
const LINE: usize = 34;
const CHARACTER: f64 = 7.0;
const LINE_HEIGHT: f64 = 13.0;
const PADDING: f64 = 6.0;
/// Above the graph: what the colours mean.
const LEGEND: f64 = 54.0;

/// A box of the picture.
struct Node {
    lines: Vec<String>,
    /// What is shown when the pointer rests on it.
    about: String,
    fill: &'static str,
    /// Made by optimisation.
    fused: bool,
    /// Nothing is done for it.
    idle: bool,
    /// An input or output of the graph.
    port: bool,
    microseconds: Option<f64>,
}

/// Draws a plan. An error when the times are of another model.
pub fn graph(name: &str, plan: &Plan, times: Option<&Times>) -> Result<String, String> {
    let (nodes, edges) = nodes(plan, times);
    if times.is_some() && nodes.iter().all(|node| node.microseconds.is_none()) {
        return Err(
            "no node of the profile is in this model as it is optimised here; record one with rukh bench MODEL \
             --trace FILE and the same options"
                .to_owned(),
        );
    }
    let total: f64 = nodes.iter().filter_map(|node| node.microseconds).sum();
    let longest = nodes.iter().filter_map(|node| node.microseconds).fold(0.0, f64::max);
    let sizes: Vec<(f64, f64)> = nodes.iter().map(Node::size).collect();
    let Placed { nodes: places, edges: lines, width, height } =
        Nodes { sizes: &sizes, edges: &edges }.place();
    let (width, height) = (width.max(840.0), height + LEGEND);
    let mut picture = draw::document(width, height).add(arrow_head());
    picture = picture.add(legend(name, plan, times.map(|_| total)));
    let mut below = Group::new().set("fill", "none").set("stroke", "#8a96a3").set("stroke-width", 1);
    for points in lines {
        below = below.add(curve(&points));
    }
    picture = picture.add(below);
    for ((node, size), place) in nodes.iter().zip(sizes).zip(places) {
        picture = picture.add(node.draw(place, size, total, longest));
    }
    Ok(picture.to_string())
}

/// A box for each input, step and output, and the edges between them.
fn nodes(plan: &Plan, times: Option<&Times>) -> (Vec<Node>, Vec<(usize, usize)>) {
    let mut nodes = Vec::new();
    let mut edges = Vec::new();
    // The box that makes a value.
    let mut maker: Vec<Option<usize>> = vec![None; plan.values.len()];
    for &input in &plan.inputs {
        maker[input] = Some(nodes.len());
        nodes.push(port(plan, input, "input"));
    }
    for step in &plan.steps {
        for &input in &step.inputs {
            if let Some(from) = maker[input] {
                edges.push((from, nodes.len()));
            }
        }
        step.outputs.iter().for_each(|&output| maker[output] = Some(nodes.len()));
        nodes.push(of_step(plan, step, times));
    }
    for &output in &plan.outputs {
        if let Some(from) = maker[output] {
            edges.push((from, nodes.len()));
        }
        nodes.push(port(plan, output, "output"));
    }
    edges.sort_unstable();
    edges.dedup();
    (nodes, edges)
}

fn port(plan: &Plan, value: usize, what: &str) -> Node {
    let value = &plan.values[value];
    Node {
        lines: vec![shortened(&value.name, LINE), shortened(&value.ty, LINE)],
        about: format!("{what} {}\n{}", value.name, value.ty),
        fill: draw::NONE,
        fused: false,
        idle: false,
        port: true,
        microseconds: None,
    }
}

fn of_step(plan: &Plan, step: &PlanStep, times: Option<&Times>) -> Node {
    let microseconds = times.and_then(|times| times.of(&step.node));
    let values = |indices: &[usize]| -> Vec<String> {
        indices.iter().map(|&i| format!("{} {}", plan.values[i].name, plan.values[i].ty)).collect()
    };
    let mut lines = vec![shortened(&step.operator, LINE), shortened(&step.node, LINE)];
    // More than two outputs would make a tower of the box; the title has all.
    lines.extend(step.outputs.iter().take(2).map(|&output| shortened(&plan.values[output].ty, LINE)));
    let mut about = format!("{} ({})\n{}, {}", step.node, step.operator, step.provider, step.action);
    for line in values(&step.inputs) {
        about += &format!("\ntakes {line}");
    }
    for line in values(&step.outputs) {
        about += &format!("\ngives {line}");
    }
    if let Some(time) = microseconds {
        about += &format!("\n{} a run", seconds(time * 1e-6));
    }
    Node {
        lines,
        about,
        fill: match step.provider.as_str() {
            "cpu" => draw::CPU,
            "copy" => draw::COPY,
            _ => draw::GPU,
        },
        fused: is_fused(&step.operator),
        idle: step.action == "none",
        port: false,
        microseconds,
    }
}

/// Whether optimisation made the operator out of several.
fn is_fused(operator: &str) -> bool {
    let last = operator.rsplit('.').next().unwrap_or(operator);
    operator.starts_with("rukh.") || last.starts_with("Fused")
}

impl Node {
    fn size(&self) -> (f64, f64) {
        let longest = self.lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
        let rows = self.lines.len() + usize::from(self.microseconds.is_some());
        ((longest as f64 * CHARACTER + 2.0 * PADDING).max(90.0), rows as f64 * LINE_HEIGHT + 2.0 * PADDING)
    }

    fn draw(&self, (x, y): (f64, f64), (width, height): (f64, f64), total: f64, longest: f64) -> Group {
        let (left, top) = (x - width / 2.0, y - height / 2.0 + LEGEND);
        let mut border =
            draw::rectangle(left, top, width, height).set("fill", self.fill).set("stroke", draw::FAINT);
        border = border.set("rx", if self.port { 12 } else { 3 });
        if self.idle {
            border = border.set("stroke-dasharray", "3 3");
        }
        let mut group = Group::new().add(title(&self.about)).add(border);
        if self.fused {
            let inner = draw::rectangle(left + 2.0, top + 2.0, width - 4.0, height - 4.0);
            group = group.add(inner.set("fill", "none").set("stroke", draw::FAINT).set("rx", 2));
        }
        let mut row = top + PADDING + LINE_HEIGHT - 3.0;
        for (i, line) in self.lines.iter().enumerate() {
            let colour = if i == 0 { draw::TEXT } else { draw::FAINT };
            let mut line = text(line, x, row, 11, colour).set("text-anchor", "middle");
            if i == 0 {
                line = line.set("font-weight", "bold");
            }
            group = group.add(line);
            row += LINE_HEIGHT;
        }
        if let Some(time) = self.microseconds {
            let share = if total > 0.0 { time / total } else { 0.0 };
            let line = format!("{}, {:.1} %", seconds(time * 1e-6), share * 100.0);
            group = group.add(text(&line, x, row, 11, draw::HOT).set("text-anchor", "middle"));
            let bar = (width - 2.0) * if longest > 0.0 { time / longest } else { 0.0 };
            group =
                group.add(draw::rectangle(left + 1.0, top + height - 4.0, bar, 3.0).set("fill", draw::HOT));
        }
        group
    }
}

fn legend(name: &str, plan: &Plan, total: Option<f64>) -> Group {
    let mut about = format!("{name}: {} steps", plan.steps.len());
    if let Some(total) = total {
        about += &format!(", {} a run in the nodes of the profile", seconds(total * 1e-6));
    }
    let mut group = Group::new().add(text(&about, 20.0, 22.0, 14, draw::TEXT));
    let mut x = 20.0;
    for (fill, name) in [(draw::CPU, "cpu"), (draw::GPU, "hip"), (draw::COPY, "copy")] {
        group = group.add(draw::rectangle(x, 32.0, 14.0, 12.0).set("fill", fill).set("stroke", draw::FAINT));
        group = group.add(text(name, x + 18.0, 42.0, 11, draw::TEXT));
        x += 64.0;
    }
    let rest = "double border: made by optimisation; dashed: nothing to do in a run; rest the pointer on a box for more";
    group.add(text(rest, x, 42.0, 11, draw::FAINT))
}

fn arrow_head() -> Definitions {
    let head = Path::new().set("d", "M0,0 L6,3 L0,6 z").set("fill", "#8a96a3");
    let marker = Marker::new()
        .set("id", "head")
        .set("markerWidth", 6)
        .set("markerHeight", 6)
        .set("refX", 6)
        .set("refY", 3)
        .set("orient", "auto")
        .add(head);
    Definitions::new().add(marker)
}

/// A line through points that leaves and reaches each of them from above.
fn curve(points: &[(f64, f64)]) -> Path {
    let mut data = String::new();
    for (i, &(x, y)) in points.iter().enumerate() {
        let (x, y) = (round(x), round(y + LEGEND));
        match i.checked_sub(1).map(|before| points[before]) {
            None => data += &format!("M{x},{y}"),
            Some((from_x, from_y)) => {
                let (from_x, middle) = (round(from_x), round((from_y + LEGEND + y) / 2.0));
                data += &format!(" C{from_x},{middle} {x},{middle} {x},{y}");
            }
        }
    }
    Path::new().set("d", data).set("marker-end", "url(#head)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pictures::PlanValue;

    /// A chain of nodes, each of which takes the first one's result too.
    fn chain(length: usize) -> Plan {
        let value = |i: usize| PlanValue {
            name: format!("v<{i}>"),
            ty: "float[1, 8]".to_owned(),
            ..PlanValue::default()
        };
        let step = |i: usize| PlanStep {
            node: format!("node{i}"),
            operator: if i == 1 { "com.microsoft.FusedConv" } else { "Add" }.to_owned(),
            provider: if i.is_multiple_of(2) { "cpu" } else { "hip" }.to_owned(),
            action: "kernel".to_owned(),
            inputs: vec![i, i.min(1)],
            outputs: vec![i + 1],
            ..PlanStep::default()
        };
        Plan {
            inputs: vec![0],
            outputs: vec![length],
            steps: (0..length).map(step).collect(),
            values: (0..=length).map(value).collect(),
            ..Plan::default()
        }
    }

    #[test]
    fn a_thousand_nodes_have_their_boxes_and_edges() {
        let plan = chain(1000);
        let picture = graph("model", &plan, None).unwrap();
        assert_eq!(picture, graph("model", &plan, None).unwrap());
        assert_eq!(picture.matches("marker-end").count(), 1 + 1000 + 998);
        assert_eq!(picture.matches("<title>").count(), 1002);
        for part in ["node999", "FusedConv", "v&lt;0&gt;", "model: 1000 steps"] {
            assert!(picture.contains(part), "{part}");
        }
        assert!(
            !picture.contains("http") || picture.matches("http").count() == 1,
            "nothing comes from elsewhere"
        );
    }

    #[test]
    fn names_tell_what_optimisation_made() {
        for (operator, fused) in
            [("rukh.NhwcConv", true), ("com.microsoft.FusedMatMul", true), ("Add", false)]
        {
            assert_eq!(is_fused(operator), fused, "{operator}");
        }
    }
}
