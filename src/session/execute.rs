//! One run of a session: what it is given is checked, and what goes with the run is set up.

use std::time::Instant;

use smallvec::SmallVec;

use crate::error::{Result, fail};
use crate::tensor::{Value, ValueRef};

use super::Session;
use super::inputs::{MANY, Symbols, check_input};
use super::output::Output;
use super::profile::Recorder;
use super::run::{self, Ending, RunContext};
use super::run_options::{RunOptions, flag};
use super::watch::Watch;

impl Session {
    /// Checks what a run is given, and runs the program.
    pub(super) fn execute<'v>(
        &self,
        options: &RunOptions,
        inputs: impl Iterator<Item = Option<&'v Value>>,
        outputs: &mut [Output],
        ending: &mut Ending,
    ) -> Result<()> {
        let start = self.recorder.as_ref().map(Recorder::now);
        let mut symbols: Symbols<'_> = SmallVec::new();
        // Foreign memory may be misaligned for its type; such an input is copied.
        let mut copies: SmallVec<[(usize, Value); 1]> = SmallVec::new();
        let mut values: SmallVec<[ValueRef<'_>; MANY]> = SmallVec::new();
        for (index, (port, value)) in self.opened.inputs.iter().zip(inputs).enumerate() {
            let Some(value) = value else {
                fail!(InvalidInput, "input \"{}\" is missing; the model needs it", port.name);
            };
            check_input(port, value, &mut symbols)?;
            self.check_device("input", &port.name, value)?;
            if let Value::Tensor(tensor) = value
                && !tensor.is_aligned()
            {
                copies.push((index, Value::Tensor(tensor.aligned()?)));
            }
            copies.extend(self.adapted_on_device(options, index, value)?.map(|copy| (index, copy)));
            values.push(ValueRef::Value(value));
        }
        for (index, value) in &copies {
            values[*index] = ValueRef::Value(value);
        }
        let stream = match (options.compute_stream, &self.opened.program.device) {
            (Some(address), Some(device)) => Some(device.provider.stream_of_user(address)?),
            (Some(address), None) => fail!(
                InvalidArgument,
                "run option \"compute_stream\" {address:#x}: no node of this session runs on a device"
            ),
            _ => None,
        };
        let watch = options.timeout.map(|limit| Watch::start(limit, options.cancel.clone())).transpose()?;
        let cancel = watch.as_ref().map_or_else(|| options.cancel.clone(), |watch| Some(watch.flag()));
        let pool = self.pool.until(cancel.clone());
        let log = self.log.of_run(options.tag.as_deref(), options.log_level);
        let begin = log.tells_nodes().then(Instant::now);
        let cx = RunContext {
            pool: &pool,
            cancel: flag(&cancel),
            recorder: self.recorder.as_ref(),
            log,
            session: self.number,
            priority: options.priority,
            stream: stream.as_ref(),
        };
        let mut result = run::run(cx, &self.opened.program, &values, outputs, ending);
        if let Some(watch) = watch {
            result = result.map_err(|error| watch.explain(error));
        }
        if let (true, Some(device)) = (options.shrink_arena, &self.opened.program.device) {
            device.release();
            device.provider.memory().shrink()?;
        }
        log.tell_end(begin, &result);
        self.report_tuning();
        if let (Some(recorder), Some(start)) = (&self.recorder, start) {
            recorder.span(options.tag.as_deref().unwrap_or("run"), start);
        }
        result
    }
}
