//! Which graph serves which run.

use std::any::Any;
use std::sync::Arc;

use crate::hip::{CaptureMode, Captured, Graph, Stream};
use crate::providers::hip::graphs::{Graphs, MovingStep, Recorded, RecordedRun};

use crate::providers::hip::Provider;
use crate::providers::hip::testing::provider;

type Plan = Arc<dyn Any + Send + Sync>;

/// A graph of no work. On a card the threads of other tests may end a capture by what they allocate meanwhile: it is tried
/// again then.
fn recorded(provider: &Provider, plan: &Plan, movable: bool) -> Option<RecordedRun> {
    let captured = || match Graph::capture(provider.uploads(), CaptureMode::ThreadLocal, || true) {
        Ok(Captured::Graph(graph)) => Some(graph),
        _ => None,
    };
    let graph = (0..1000).find_map(|_| captured())?;
    let moving: Option<Vec<MovingStep>> = movable.then(Vec::new);
    Some(RecordedRun::new(graph, moving, plan.clone()))
}

/// Calls of the library's are not what a capture forbids; code of the caller's is judged by the thread's own mode.
#[test]
fn threads_are_relaxed_inside_alone() {
    const GLOBAL: Option<i32> = Some(0);
    const RELAXED: Option<i32> = Some(2);
    let Some(provider) = provider(&[]) else { return };
    let device = provider.device();
    let stream = Stream::new(device).unwrap();
    let mode = || device.capture_mode();
    let modes = || {
        let before = mode();
        let outer = device.enter().unwrap();
        let first = mode();
        drop(device.enter().unwrap());
        let again = mode();
        drop(outer);
        let caller = device.enter_for_caller().unwrap();
        let of_caller = mode();
        drop(caller);
        [before, first, again, of_caller, mode()]
    };
    let want = [GLOBAL, RELAXED, RELAXED, GLOBAL, GLOBAL];
    assert_eq!(modes(), want);
    let mut captured = [None; 5];
    let graph = Graph::capture(&stream, CaptureMode::ThreadLocal, || {
        captured = modes();
        true
    });
    assert!(matches!(graph.unwrap(), Captured::Graph(_)));
    assert_eq!(captured, want);
}

/// Runs of plan 0 by their addresses: what was found, and what is said of it.
#[test]
fn a_graph_serves_its_plan_and_addresses() {
    use Recorded::*;
    let Some(provider) = provider(&[]) else { return };
    let plan: Plan = Arc::new(0);
    for (name, movable, refused, runs) in [
        ("again", true, false, &[(1, Not), (1, Again), (1, Ready)][..]),
        ("always another", true, false, &[(1, Not), (2, Again), (3, Elsewhere(1)), (4, Elsewhere(1))]),
        ("it came back", true, false, &[(1, Not), (1, Again), (2, Elsewhere(1)), (1, Again), (2, Ready)]),
        // One that cannot be changed is made for addresses that come again.
        ("not movable", false, false, &[(1, Not), (1, Again), (2, Not), (3, Not), (2, Again), (1, Ready)]),
        // After a refusal the runs that come again have graphs of their own.
        ("refused", true, true, &[(1, Not), (1, Again), (2, Elsewhere(1)), (3, Not), (2, Again), (2, Ready)]),
    ] {
        let mut graphs = Graphs::default();
        for (at, &(address, wanted)) in runs.iter().enumerate() {
            let found = graphs.find(&plan, &[address]);
            assert_eq!(found, wanted, "{name}, run {at}");
            match found {
                Again => graphs.set(recorded(&provider, &plan, movable)),
                Elsewhere(from) => graphs.moved(from, !refused),
                Not | Ready => {}
            }
        }
    }
}

#[test]
fn graphs_end_by_number_and_with_their_plan() {
    let Some(provider) = provider(&[]) else { return };
    let mut graphs = Graphs::default();
    let plans: Vec<Plan> = (0..40).map(|i| Arc::new(i) as Plan).collect();
    for plan in &plans {
        for wanted in [Recorded::Not, Recorded::Again] {
            assert_eq!(graphs.find(plan, &[7, 8]), wanted);
        }
        graphs.set(recorded(&provider, plan, true));
    }
    assert_eq!(graphs.counts(), (16, 0));
    assert!(graphs.wants_to_settle(), "24 are retired");
    graphs.settled();
    assert!(!graphs.wants_to_settle());
    assert_eq!(
        (graphs.find(&plans[0], &[7, 8]), graphs.find(&plans[39], &[7, 8])),
        (Recorded::Not, Recorded::Ready)
    );
    // A plan that the session has dropped is kept by its graph, until another plan comes.
    let last = Arc::downgrade(&plans[39]);
    drop(plans);
    let other: Plan = Arc::new(100);
    assert!(last.upgrade().is_some());
    graphs.find(&other, &[7, 8]);
    assert_eq!(graphs.counts(), (0, 0));
    graphs.settled();
    assert!(last.upgrade().is_none());
}

#[test]
fn a_graph_is_changed_so_often_and_made_again() {
    let Some(provider) = provider(&[]) else { return };
    let (plan, mut graphs, mut made): (Plan, _, _) = (Arc::new(0), Graphs::default(), 0);
    for address in 0..10_000 {
        match graphs.find(&plan, &[address]) {
            Recorded::Again => {
                graphs.set(recorded(&provider, &plan, true));
                made += 1;
            }
            Recorded::Elsewhere(at) => graphs.moved(at, true),
            Recorded::Not => assert!(address == 0 || made > 0),
            Recorded::Ready => panic!("no address comes again"),
        }
    }
    assert_eq!(made, 3);
}
