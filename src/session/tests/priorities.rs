//! Priorities of runs on a GPU, real or emulated. Without one this test has nothing to hold to and says so.

use super::on_hip::{on_hip, open_with};
use super::*;
use crate::model::testing::floats;
use crate::session::RunOptions;
use crate::tensor::ElementType::F32;
use crate::threads::Priority;

#[test]
fn a_run_has_a_stream_of_its_priority() {
    let Some(options) = on_hip(&[]) else { return };
    let model = ModelBuilder::new()
        .input("x", F32, &["4", "4"])
        .initializer(floats("w", &[4, 4], &[0.5; 16]))
        .node("MatMul", &["x", "w"], &["y"])
        .output("y");
    let session = open_with(environment(), &model, &options);
    let x = t(&[4, 4], &[1.0f32; 16]);
    for priority in [Priority::High, Priority::Low, Priority::Normal, Priority::High, Priority::Low] {
        let options = RunOptions { priority, ..RunOptions::default() };
        let outputs = session.run(&options, &[(0, x.clone())], &[0]).unwrap();
        assert_eq!(elements::<f32>(&outputs[0]), [2.0; 16]);
    }
    // Contexts are kept for runs of their priority, and the runtime's smaller numbers are more urgent.
    let found = session.opened.program.device.as_ref().unwrap().priorities();
    let number = |wanted| found.iter().find(|(priority, _)| *priority == wanted).unwrap().1;
    assert_eq!(found.len(), 3, "{found:?}");
    let numbers = [Priority::High, Priority::Normal, Priority::Low].map(number);
    assert!(numbers.is_sorted(), "{numbers:?}");
    if std::env::var("RUKH_HIP_LIBRARY").is_ok_and(|path| path.contains("emulator")) {
        assert_eq!(numbers, [Some(-1), Some(0), Some(1)]);
    }
}
