//! Invariants of the cards, and predictions from counters made by hand.

use super::*;
use crate::isa::Target;
use crate::machine::count::{Alone, Class, LaunchCounts, LdsCounts, MemoryCounts, Occupancy, Timing};

/// A launch of workgroups of 256 work items that do nothing.
fn counts(card: &Card, workgroups: u64) -> LaunchCounts {
    let lanes = if card.is_rdna() { 32 } else { 64 };
    LaunchCounts {
        kernel: "test".to_owned(),
        target: card.target.to_owned(),
        lanes,
        workgroups,
        counted_workgroups: workgroups,
        workgroup_size: 256,
        workgroup_waves: 256 / lanes,
        occupancy: Occupancy { waves_per_simd: 8, workgroups_per_unit: 8, ..Occupancy::default() },
        ..LaunchCounts::default()
    }
}

fn time(counts: &LaunchCounts, card: &Card) -> Prediction {
    predict(counts, card, &Settings { launch: 0.0, warm: false }).expect("counters of the card")
}

#[test]
fn cards_are_plausible() {
    for card in CARDS {
        let target = Target::find(card.target).expect("a target");
        assert!(Card::find(card.key).is_some_and(|found| found.title == card.title));
        assert_eq!(Card::of_target(target).key, card.key);
        assert!(card.runs(target) && card.compute_units.is_multiple_of(2));
        assert!((1000..4000).contains(&card.clock) && (0.5..1.0).contains(&card.memory_reached));
        // Caches are faster than what is behind them.
        let l2 = f64::from(card.l2_width) * f64::from(card.clock) / 1e3;
        assert!(l2 > card.memory && (card.last_bytes == 0 || card.last > card.memory), "{}", card.key);
        assert_eq!(card.last_bytes == 0, card.last == 0.0);
        assert!(Card::find(&card.key.to_uppercase()).is_some());
    }
    assert!(Card::find("no card").is_none());
}

/// As many operations as the data sheets say: those of a wave times four SIMDs, in the time of its cycles.
#[test]
fn rates_are_those_of_the_data_sheets() {
    for card in CARDS {
        let target = Target::find(card.target).expect("a target");
        let lanes = if card.is_rdna() { 32 } else { 64 };
        let per_second = |operations: f64, cycles: u32| {
            operations / f64::from(cycles) * 4.0 * f64::from(card.units()) * f64::from(card.clock) / 1e6
        };
        let timing = Timing::of(target);
        let cycles = timing.busy(Class::Vector32, "v_fma_f32", lanes, target.generation);
        // gfx11, gfx12: the data sheet counts two operations of one instruction.
        let dual = if card.is_rdna() && card.target != "gfx1030" { 2.0 } else { 1.0 };
        let vector = per_second(f64::from(2 * lanes) * dual, cycles);
        assert!((vector / card.peak.vector_f32 - 1.0).abs() < 0.02, "{}: {vector}", card.key);
        let Some(peak) = card.peak.matrix_f16 else { continue };
        let name = if card.is_rdna() { "v_wmma_f32_16x16x16_f16" } else { "v_mfma_f32_16x16x16_f16" };
        let cycles = timing.busy(Class::Matrix, name, lanes, target.generation);
        let matrix = per_second(2.0 * 4096.0, cycles);
        assert!((matrix / peak - 1.0).abs() < 0.02, "{}: {matrix}", card.key);
    }
}

#[test]
fn memory_bounds_a_copy() {
    for card in CARDS {
        let mut counts = counts(card, 1 << 20);
        counts.memory = MemoryCounts {
            memory_read_bytes: 1 << 30,
            memory_written_bytes: 1 << 30,
            l2_read_bytes: 1 << 30,
            l2_written_bytes: 1 << 30,
            footprint_bytes: 2 << 30,
            ..MemoryCounts::default()
        };
        let prediction = time(&counts, card);
        assert_eq!(prediction.bound, Bound::Memory, "{}", card.key);
        let expected = f64::from(2 << 20) * 1024.0 / (card.memory * card.memory_reached * 1e3);
        assert!((prediction.time / expected - 1.0).abs() < 1e-6);
        counts.memory.footprint_bytes = 1 << 20;
        let warm =
            predict(&counts, card, &Settings { launch: 1.0, warm: true }).expect("counters of the card");
        assert!(warm.bound != Bound::Memory && warm.time > 1.0);
    }
}

#[test]
fn one_workgroup_more_than_units_takes_twice_as_long() {
    let card = Card::find("mi300x").expect("a card");
    let units = u64::from(card.units());
    let busy = |workgroups: u64| {
        let mut counts = counts(card, workgroups);
        counts.instructions.insert(Class::Vector32, workgroups * 4 * 1000);
        time(&counts, card)
    };
    let (full, more) = (busy(units), busy(units + 1));
    assert_eq!(full.bound, Bound::Vector);
    // 1000 instructions of four clocks on each SIMD.
    assert!((full.time - 4000.0 / f64::from(card.clock)).abs() < 1e-9);
    assert!((more.time / full.time - 2.0).abs() < 1e-9);
}

#[test]
fn each_part_can_be_the_bound() {
    let card = Card::find("7900xtx").expect("a card");
    type Change = fn(&mut LaunchCounts);
    let rows: [(Change, Bound); 6] = [
        (|it| it.matrix_cycles = 1 << 30, Bound::Matrix),
        (|it| it.instructions = [(Class::ScalarAlu, 1 << 30)].into(), Bound::Scalar),
        (|it| it.lds = LdsCounts { cycles: 1 << 30, ..LdsCounts::default() }, Bound::Lds),
        (|it| it.memory.near_cycles = 1 << 30, Bound::NearCache),
        (|it| it.memory.l2_read_bytes = 1 << 40, Bound::L2),
        (|it| it.alone = Alone { cycles: 1e6, ..Alone::default() }, Bound::Latency),
    ];
    for (change, bound) in rows {
        let mut counts = counts(card, 96);
        change(&mut counts);
        assert_eq!(time(&counts, card).bound, bound);
    }
}

#[test]
fn reports_add_calls_up() {
    let card = Card::find("mi250x").expect("a card");
    let mut launch = counts(card, 110);
    launch.alone.cycles = 17000.0;
    let mut other = launch.clone();
    other.kernel = "other".to_owned();
    other.alone.cycles = 1700.0;
    let lines: String =
        [&launch, &other, &launch].iter().map(|it| serde_json::to_string(it).expect("JSON") + "\n").collect();
    let settings = Settings { launch: 1.0, warm: false };
    let report = Report::new(&lines, card, &settings).expect("a report");
    assert_eq!(report.kind, "prediction");
    assert_eq!((report.kernels[0].kernel.as_str(), report.kernels[0].calls), ("test", 2));
    assert!((report.predicted_us - (2.0 * 11.0 + 2.0)).abs() < 1e-9, "{report:?}");
    assert!(report.text().contains("not measured") && report.text().contains("latency"));
    for (bad, words) in [("nonsense", "line 1"), ("{}", "line 1")] {
        assert!(Report::new(bad, card, &settings).is_err_and(|error| error.contains(words)));
    }
    let other_card = Card::find("7900xtx").expect("a card");
    assert!(Report::new(&lines, other_card, &settings).is_err_and(|error| error.contains("gfx90a")));
}

/// Sums that wait for each other: five clocks from one to the next (gfx1100), and what a trace of them would be.
#[test]
fn recorded_times_beside_the_model() {
    let target = Target::find("gfx1100").expect("a target");
    // v_add_f32 v0, v0, v1; and s_waitcnt vmcnt(0) behind a load.
    let words: [u32; 5] = [0x0600_0300, 0x0600_0300, 0xdc52_0000, 0x0300_0002, 0xbf89_03f7];
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let wave = [(0, 100), (4, 105), (8, 107), (16, 900)].map(|(offset, time)| Issued { offset, time });
    let steps = replay(target, 32, &code, &wave).expect("instructions");
    let gaps: Vec<(u64, u64, bool)> =
        steps.iter().map(|step| (step.recorded, step.model, step.outside)).collect();
    assert_eq!(&gaps[..3], [(0, 0, false), (5, 5, false), (2, 1, false)]);
    assert!(gaps[3].0 == 793 && gaps[3].2, "{gaps:?}");
    let beyond = [Issued { offset: 400, time: 0 }];
    assert!(replay(target, 32, &code, &beyond).is_err());
}
