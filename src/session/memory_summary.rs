//! The memory of a device as a table for people, in the form that PyTorch's users know.

use crate::error::Result;

use super::Environment;

/// Rows by their names and by the statistics they show, with whether those are bytes.
const ROWS: [(&str, &str, bool); 8] = [
    ("Allocated memory", "allocated_bytes", true),
    ("Active memory", "active_bytes", true),
    ("Requested memory", "requested_bytes", true),
    ("GPU reserved memory", "reserved_bytes", true),
    ("Non-releasable memory", "inactive_split_bytes", true),
    ("Allocations", "allocated", false),
    ("Active allocs", "active", false),
    ("GPU reserved segments", "segment", false),
];
const POOLS: [(&str, &str); 3] =
    [("", "all"), ("      from large pool", "large_pool"), ("      from small pool", "small_pool")];
const COLUMNS: [(&str, &str); 4] =
    [("Cur Usage", "current"), ("Peak Usage", "peak"), ("Tot Alloc", "allocated"), ("Tot Freed", "freed")];
/// Characters of the first column and of each other.
const NAME: usize = 23;
const NUMBER: usize = 12;

impl Environment {
    /// What sessions do with a device's memory, as a table.
    pub(crate) fn memory_summary(&self, device_id: usize) -> Result<String> {
        let statistics = self.memory_statistics(device_id)?;
        Ok(table(device_id, &|name| {
            statistics.iter().find(|(known, _)| known == name).map_or(0, |(_, value)| *value)
        }))
    }
}

fn table(device_id: usize, value: &dyn Fn(&str) -> u64) -> String {
    let width = NAME + COLUMNS.len() * (NUMBER + 3) + 2;
    let line = |fill: char| format!("|{}|\n", fill.to_string().repeat(width));
    let title = |text: String| format!("|{text:^width$}|\n");
    let mut text = line('=');
    text += &title(format!("rukh memory summary, device {device_id}"));
    text += &line('-');
    let (retries, ooms) = (value("num_alloc_retries"), value("num_ooms"));
    text += &title(format!("out of memory: {ooms}    retried after giving back the cache: {retries}"));
    text += &line('=');
    text += &row("Metric", COLUMNS.map(|(name, _)| name.to_owned()));
    for (name, statistic, bytes) in ROWS {
        text += &line('-');
        for (pool_name, pool) in POOLS {
            let numbers = COLUMNS.map(|(_, column)| {
                let number = value(&format!("{statistic}.{pool}.{column}"));
                if bytes { size(number) } else { number.to_string() }
            });
            text += &row(if pool_name.is_empty() { name } else { pool_name }, numbers);
        }
    }
    text + &line('=')
}

fn row(name: &str, numbers: [String; COLUMNS.len()]) -> String {
    let mut text = format!("| {name:<NAME$}");
    for number in numbers {
        text += &format!(" | {number:>NUMBER$}");
    }
    text + " |\n"
}

/// At most five digits and a unit, as PyTorch writes sizes.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B  ", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut number, mut unit) = (bytes, 0);
    while number >= 100_000 && unit + 1 < UNITS.len() {
        (number, unit) = (number / 1024, unit + 1);
    }
    format!("{number} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_its_numbers_and_all_lines_are_as_long() {
        let text = table(3, &|name| match name {
            "allocated_bytes.all.current" => 5 << 20,
            "allocated_bytes.small_pool.peak" => 1234,
            "reserved_bytes.large_pool.allocated" => u64::MAX,
            "allocated.all.freed" => 123_456,
            "num_ooms" => 2,
            _ => 0,
        });
        let lengths: Vec<usize> = text.lines().map(|line| line.chars().count()).collect();
        assert!(lengths.iter().all(|&length| length == lengths[0]), "{text}");
        assert_eq!(lengths.len(), 7 + ROWS.len() * 4, "{text}");
        for part in [
            "rukh memory summary, device 3",
            "out of memory: 2 ",
            "| Allocated memory        |     5120 KiB |",
            "|       from small pool   |        0 B   |     1234 B   |",
            "16383 PiB",
            " 123456 |",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn sizes_are_short() {
        for (bytes, text) in
            [(0, "0 B  "), (99_999, "99999 B  "), (100_000, "97 KiB"), (24 << 30, "24576 MiB")]
        {
            assert_eq!(size(bytes), text);
        }
    }
}
