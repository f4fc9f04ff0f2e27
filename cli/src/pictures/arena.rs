//! What sessions hold of a GPU's memory: how much of it is used for what, and the segments with their blocks.

use serde_json::Value as Json;
use svg::node::element::Group;

use super::draw::{self, text, title};
use crate::text::bytes;

const LEFT: f64 = 150.0;
const WIDTH: f64 = 460.0;
const TOP: f64 = 60.0;
const ROW: f64 = 24.0;
const BAR: f64 = 16.0;
/// More segments than these, the largest, would make a tower of the picture.
const MOST_SEGMENTS: usize = 64;

/// Statistics that are shown, by the names that people and the library have for them.
const USES: [(&str, &str); 4] = [
    ("allocated", "allocated_bytes"),
    ("active", "active_bytes"),
    ("requested", "requested_bytes"),
    ("reserved", "reserved_bytes"),
];

/// A GPU's memory at one moment.
#[derive(Clone, Debug, Default)]
pub struct Arena {
    device: usize,
    /// Bytes now and at the peak, for each of `USES`.
    uses: Vec<(u64, u64)>,
    /// The largest first.
    segments: Vec<Segment>,
}

#[derive(Clone, Debug, Default)]
struct Segment {
    bytes: u64,
    /// In the order of addresses: bytes and state.
    blocks: Vec<(u64, String)>,
}

impl Arena {
    /// From the library's snapshot and a function that gives its statistics by name.
    pub fn read(
        device: usize,
        snapshot: &str,
        statistic: impl Fn(&str) -> Result<u64, String>,
    ) -> Result<Arena, String> {
        let json: Json =
            serde_json::from_str(snapshot).map_err(|e| format!("the library's snapshot: {e}"))?;
        let list = |json: &Json| json.as_array().cloned().unwrap_or_default();
        let block =
            |json: &Json| (number(&json["size"]), json["state"].as_str().unwrap_or_default().to_owned());
        let segment = |json: &Json| Segment {
            bytes: number(&json["total_size"]),
            blocks: list(&json["blocks"]).iter().map(block).collect(),
        };
        let mut segments: Vec<Segment> = list(&json)
            .iter()
            .flat_map(|session| list(&session["segments"]))
            .map(|json| segment(&json))
            .collect();
        segments.sort_by_key(|segment| std::cmp::Reverse(segment.bytes));
        let both = |name: &str| {
            Ok((statistic(&format!("{name}.all.current"))?, statistic(&format!("{name}.all.peak"))?))
        };
        let uses = USES.iter().map(|(_, name)| both(name)).collect::<Result<_, String>>()?;
        Ok(Arena { device, uses, segments })
    }

    fn drawn(&self) -> &[Segment] {
        &self.segments[..self.segments.len().min(MOST_SEGMENTS)]
    }

    pub(super) fn height(&self) -> f64 {
        TOP + ROW * (USES.len() + self.drawn().len() + 2) as f64 + ROW
    }

    pub(super) fn draw(&self, name: &str) -> Group {
        let most = self.uses.iter().map(|(_, peak)| *peak).max().unwrap_or(0).max(1);
        let told = "full: now; outlined: at the peak";
        let mut group = Group::new()
            .add(text(&format!("{name}, what is held of device {}", self.device), 20.0, 22.0, 14, draw::TEXT))
            .add(text(told, 20.0, 42.0, 11, draw::FAINT));
        let mut y = TOP;
        for ((label, _), &(now, peak)) in USES.iter().zip(&self.uses) {
            let bar = |of: u64| draw::rectangle(LEFT, y, WIDTH * of as f64 / most as f64, BAR);
            let numbers = format!("{}, peak {}", bytes(now), bytes(peak));
            group = group
                .add(text(label, 20.0, y + 12.0, 11, draw::TEXT))
                .add(bar(now).set("fill", draw::GPU))
                .add(bar(peak).set("fill", "none").set("stroke", draw::HOT))
                .add(text(&numbers, LEFT + 4.0, y + 12.0, 11, draw::TEXT));
            y += ROW;
        }
        let all: u64 = self.segments.iter().map(|segment| segment.bytes).sum();
        let (count, drawn) = (self.segments.len(), self.drawn());
        let mut heading = format!("{count} segments of {}", bytes(all));
        if drawn.len() < count {
            let rest: u64 = self.segments[drawn.len()..].iter().map(|segment| segment.bytes).sum();
            heading += &format!("; the {} largest, without {} in the others", drawn.len(), bytes(rest));
        }
        heading += "; coloured: allocated, grey: freed and awaited, white: free";
        y += ROW;
        group = group.add(text(&heading, 20.0, y - 8.0, 11, draw::FAINT));
        for segment in drawn {
            group = segment.draw(group, y);
            y += ROW;
        }
        group
    }
}

impl Segment {
    /// Each segment is as wide as every other one, so that blocks of small ones are seen.
    fn draw(&self, mut group: Group, y: f64) -> Group {
        let scale = WIDTH / self.bytes.max(1) as f64;
        let mut from = 0;
        for (size, state) in &self.blocks {
            let fill = match state.as_str() {
                "active_allocated" => draw::GPU,
                "active_awaiting_free" => draw::COPY,
                _ => draw::NONE,
            };
            let about = format!("{}, from byte {from}, {}", bytes(*size), state.replace('_', " "));
            let block = draw::rectangle(LEFT + scale * from as f64, y, scale * *size as f64, BAR)
                .set("fill", fill)
                .set("stroke", draw::FAINT)
                .set("stroke-width", 0.5);
            group = group.add(Group::new().add(title(&about)).add(block));
            from += size;
        }
        group.add(text(&bytes(self.bytes), 20.0, y + 12.0, 11, draw::TEXT))
    }
}

fn number(json: &Json) -> u64 {
    json.as_u64().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arena(snapshot: &str) -> Result<Arena, String> {
        Arena::read(1, snapshot, |name| match name {
            "allocated_bytes.all.current" => Ok(300),
            "reserved_bytes.all.peak" => Ok(4096),
            "requested_bytes.all.peak" | "reserved_bytes.all.current" => Ok(2048),
            _ => Ok(1024),
        })
    }

    #[test]
    fn uses_and_segments_are_shown() {
        let snapshot = r#"[{"segments":[{"total_size":512,"blocks":[{"size":512,"state":"inactive"}]}]},
            {"segments":[{"total_size":1536,"blocks":[{"size":300,"state":"active_allocated"},
            {"size":1236,"state":"active_awaiting_free"}]}],"device_traces":[[]]}]"#;
        let arena = arena(snapshot).unwrap();
        let picture = arena.draw("model").to_string();
        for part in [
            "model, what is held of device 1",
            "300 B, peak 1.0 kB",
            "2.0 kB, peak 4.1 kB",
            "2 segments of 2.0 kB; coloured",
            "1.2 kB, from byte 300, active awaiting free",
            "512 B, from byte 0, inactive",
        ] {
            assert!(picture.contains(part), "{part}: {picture}");
        }
        // The larger one comes first.
        assert!(picture.find("from byte 300") < picture.find("512 B, from"), "{picture}");
        assert_eq!(arena.height(), TOP + ROW * 9.0);
    }

    #[test]
    fn many_segments_make_no_tower() {
        let segment = r#"{"total_size":1000,"blocks":[{"size":1000,"state":"inactive"}]}"#;
        let segments = [segment; MOST_SEGMENTS + 5].join(",");
        let arena = arena(&format!("[{{\"segments\":[{segments}]}}]")).unwrap();
        let picture = arena.draw("model").to_string();
        assert_eq!(picture.matches("<title>").count(), MOST_SEGMENTS);
        assert!(
            picture.contains("69 segments of 69.0 kB; the 64 largest, without 5.0 kB in the others"),
            "{picture}"
        );
    }

    #[test]
    fn what_is_no_snapshot_is_an_error() {
        assert!(arena("[").unwrap_err().starts_with("the library's snapshot: "));
        let failing = Arena::read(0, "[]", |name| Err(format!("no {name}")));
        assert_eq!(failing.unwrap_err(), "no allocated_bytes.all.current");
    }
}
