//! Times one operator of each family on about a million elements: `cargo bench --bench operators [-- NAME…]`.
//!
//! Each row of operators.txt is a model of one node, run through the C API on as many threads as the machine
//! has. Beside the time stands what is achieved and what part that is of this machine's bound, which is measured
//! first: copying memory on all threads, or a matrix product. scripts/bench_operators.py compares the same rows
//! with ONNX Runtime.

mod model;
#[path = "../../fuzz/fuzz_targets/run_node/protobuf.rs"]
mod protobuf;
mod table;

use std::sync::Barrier;
use std::time::{Duration, Instant};

use model::Session;
use table::{Row, Work};

/// How long a row is run.
const ROW: Duration = Duration::from_millis(400);

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let copy = copy_bandwidth(threads);
    let rows = table::rows(include_str!("../operators.txt"));
    let product = rows.iter().find(|row| row.operator == "MatMul").map_or(f64::NAN, |row| {
        let Work::Flops(flops) = row.work else { return f64::NAN };
        flops / best(&Session::open(row)).as_secs_f64() / 1e9
    });
    println!("{threads} threads; copying memory {copy:.1} GB/s, product of matrices {product:.1} GFLOP/s");
    println!("{:26}{:36}{:>10}{:>16}{:>10}", "family", "operator", "µs", "", "of bound");
    for row in rows.iter().filter(|row| wanted.is_empty() || wanted.contains(&row.operator)) {
        let session = Session::open(row);
        let seconds = best(&session).as_secs_f64();
        let (rate, unit, bound) = match row.work {
            Work::Bytes => (session.bytes() as f64 / seconds / 1e9, "GB/s", copy),
            Work::Flops(flops) => (flops / seconds / 1e9, "GFLOP/s", product),
        };
        let name = format!("{} {}", row.operator, row.attributes_text);
        println!(
            "{:26}{:36.35}{:10.0}{rate:9.1} {unit:7}{:8.0} %",
            row.family,
            name,
            seconds * 1e6,
            rate / bound * 100.0
        );
    }
}

/// The shortest run.
fn best(session: &Session) -> Duration {
    let start = Instant::now();
    let mut best = Duration::MAX;
    while start.elapsed() < ROW {
        let begin = Instant::now();
        session.run();
        best = best.min(begin.elapsed());
    }
    best
}

/// GB/s read and written by copying 4 MB on all threads together.
fn copy_bandwidth(threads: usize) -> f64 {
    const BYTES: usize = 4 << 20;
    const TIMES: u32 = 400;
    let barrier = Barrier::new(threads + 1);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let from = vec![1u8; BYTES / threads];
                let mut to = vec![0u8; BYTES / threads];
                barrier.wait();
                for _ in 0..TIMES {
                    to.copy_from_slice(std::hint::black_box(&from));
                    std::hint::black_box(&mut to);
                }
                barrier.wait();
            });
        }
        barrier.wait();
        let start = Instant::now();
        barrier.wait();
        2.0 * BYTES as f64 * TIMES as f64 / start.elapsed().as_secs_f64() / 1e9
    })
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.operator, self.attributes_text)
    }
}
