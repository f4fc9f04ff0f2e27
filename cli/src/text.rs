//! Numbers and tables for people.

/// `102.1 MB`; decimal units, as disks and files are told.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{count} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// A duration in the unit that suits it.
pub fn seconds(value: f64) -> String {
    match value {
        v if v < 1e-3 => format!("{:.1} µs", v * 1e6),
        v if v < 1.0 => format!("{:.2} ms", v * 1e3),
        v => format!("{v:.2} s"),
    }
}

/// Rows with aligned columns, each line indented; columns whose index is in `right` are flush right.
pub fn table(rows: &[Vec<String>], right: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|c| rows.iter().filter_map(|row| row.get(c)).map(|cell| cell.chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::from(" ");
        for (c, cell) in row.iter().enumerate() {
            let padding = " ".repeat(widths[c] - cell.chars().count());
            line.push(' ');
            line.push_str(&if right.contains(&c) {
                format!("{padding}{cell}")
            } else {
                format!("{cell}{padding}")
            });
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Memory of this process that is no file's, and the most that was resident at once, in bytes. `None`
/// where the system does not tell.
pub fn memory() -> Option<(u64, u64)> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let field = |name: &str| -> Option<u64> {
        let line = status.lines().find(|line| line.starts_with(name))?;
        Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
    };
    Some((field("RssAnon:")?, field("VmHWM:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_suit_the_number() {
        for (count, text) in [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (102_100_000, "102.1 MB")] {
            assert_eq!(bytes(count), text);
        }
        for (value, text) in [(0.0000015, "1.5 µs"), (0.0205, "20.50 ms"), (3.0, "3.00 s")] {
            assert_eq!(seconds(value), text);
        }
    }

    #[test]
    fn columns_align() {
        let rows = [vec!["µ".to_owned(), "1".to_owned()], vec!["ab".to_owned(), "22".to_owned()]];
        assert_eq!(table(&rows, &[1]), "  µ   1\n  ab 22\n");
    }
}
