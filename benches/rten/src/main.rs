//! Runs a model with rten for `scripts/bench/bench.py`, by the protocol of `scripts/bench/worker.py`.
//!
//!     bench-rten MODEL FOLDER THREADS
//!
//! FOLDER has `inputs.txt`, a line an input: type (f32 or i32), dimensions with `x` between them, file of raw
//! numbers, name. The outputs are written there likewise.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{BufRead, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rten::{Model, NodeId, RunOptions, ThreadPool, Value, ValueOrView};
use rten_tensor::{AsView, Layout};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, folder, threads] = arguments.as_slice() else {
        return Err("usage: bench-rten MODEL FOLDER THREADS".into());
    };
    let folder = Path::new(folder);
    let pool = ThreadPool::with_num_threads(threads.parse()?);
    let options = RunOptions::default().with_thread_pool(Some(Arc::new(pool)));
    let before = memory("RssAnon:");
    let start = Instant::now();
    let model = Model::load_file(model)?;
    let load = start.elapsed();
    let inputs = read_inputs(&model, folder)?;
    let run = || {
        let feed: Vec<(NodeId, ValueOrView)> =
            inputs.iter().map(|(node, value)| (*node, ValueOrView::from(value))).collect();
        model.run(feed, model.output_ids(), Some(options.clone()))
    };
    let begin = Instant::now();
    let outputs = run()?;
    let first = load + begin.elapsed();
    write_outputs(folder, outputs)?;
    run()?;
    println!(
        "{{\"load_ms\": {:.3}, \"first_ms\": {:.3}, \"anonymous_mb\": {:.1}, \"peak_mb\": {:.1}}}",
        load.as_secs_f64() * 1e3,
        first.as_secs_f64() * 1e3,
        memory("RssAnon:") - before,
        memory("VmHWM:"),
    );
    std::io::stdout().flush()?;
    for line in std::io::stdin().lock().lines() {
        let budget = Duration::from_secs_f64(line?.trim().parse::<f64>()? / 1e3);
        run()?;
        let turn = Instant::now();
        let mut times = String::new();
        while times.is_empty() || turn.elapsed() < budget {
            let begin = Instant::now();
            run()?;
            let separator = if times.is_empty() { "" } else { ", " };
            write!(times, "{separator}{:.4}", begin.elapsed().as_secs_f64() * 1e3)?;
        }
        println!("[{times}]");
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// A line of `/proc/self/status`, in MB.
fn memory(key: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or("0");
    line.split_whitespace().next().and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(0.0) / 1e3
}

fn read_inputs(model: &Model, folder: &Path) -> Result<Vec<(NodeId, Value)>, Box<dyn Error>> {
    let mut inputs = Vec::new();
    for line in std::fs::read_to_string(folder.join("inputs.txt"))?.lines() {
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next().ok_or("inputs.txt: a line has four words");
        let (ty, dims, file, name) = (word()?, word()?, word()?, word()?);
        let dims: Vec<usize> = dims.split('x').filter(|d| !d.is_empty()).map(str::parse).collect::<Result<_, _>>()?;
        let bytes = std::fs::read(folder.join(file))?;
        let words = bytes.chunks_exact(4).map(|word| [word[0], word[1], word[2], word[3]]);
        let value = match ty {
            "f32" => Value::from_shape(&dims, words.map(f32::from_le_bytes).collect::<Vec<_>>())?,
            "i32" => Value::from_shape(&dims, words.map(i32::from_le_bytes).collect::<Vec<_>>())?,
            other => return Err(format!("rten takes no {other}").into()),
        };
        inputs.push((model.node_id(name)?, value));
    }
    Ok(inputs)
}

/// `outputs.txt` and a file an output, which is converted to f32.
fn write_outputs(folder: &Path, outputs: Vec<Value>) -> Result<(), Box<dyn Error>> {
    let mut list = String::new();
    for (i, output) in outputs.into_iter().enumerate() {
        let (dims, numbers): (Vec<usize>, Vec<f32>) = match output {
            Value::FloatTensor(t) => (t.shape().to_vec(), t.to_vec()),
            Value::Int32Tensor(t) => (t.shape().to_vec(), t.iter().map(|&x| x as f32).collect()),
            other => return Err(format!("an output of {:?}", other.dtype()).into()),
        };
        let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
        writeln!(list, "f32 {} output{i}.bin", dims.join("x"))?;
        let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        std::fs::write(folder.join(format!("output{i}.bin")), bytes)?;
    }
    Ok(std::fs::write(folder.join("outputs.txt"), list)?)
}
