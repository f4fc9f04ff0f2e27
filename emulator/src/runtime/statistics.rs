//! Counts and times of kernels.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use super::lock;

/// For each kernel, by its name: launches, and their time.
#[derive(Default)]
pub struct Statistics(Mutex<BTreeMap<String, (u64, Duration)>>);

impl Statistics {
    pub fn kernel(&self, name: &str, time: Duration) {
        let mut kernels = lock(&self.0);
        if let Some((launches, total)) = kernels.get_mut(name) {
            *launches += 1;
            *total += time;
        } else {
            kernels.insert(name.to_owned(), (1, time));
        }
    }

    /// A line for each kernel, those that took longest first.
    pub fn lines(&self) -> Vec<String> {
        let mut rows: Vec<_> = lock(&self.0).iter().map(|(name, row)| (name.clone(), *row)).collect();
        rows.sort_by_key(|(_, (_, time))| std::cmp::Reverse(*time));
        rows.iter()
            .map(|(name, (launches, time))| {
                let milliseconds = time.as_secs_f64() * 1e3;
                format!("{launches:8} launches {milliseconds:12.3} ms  {name}")
            })
            .collect()
    }
}
