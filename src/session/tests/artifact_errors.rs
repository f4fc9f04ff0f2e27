//! What is refused of compiled models: damage, and models that cannot be compiled.

use std::collections::BTreeMap;
use std::path::Path;

use super::artifacts::{Compiled, network, options};
use super::*;
use crate::artifact::Policy;
use crate::error::Status;
use crate::session::{CompileOptions, Targets, compile_model};
use crate::tensor::ElementType::I64;

#[test]
fn what_cannot_be_compiled_says_so_and_leaves_nothing() {
    let compiled = Compiled::new("refused", &network(), "cpu", Policy::Used, &options(&[]));
    let before = std::fs::read(&compiled.artifact).unwrap();
    let wanted = CompileOptions {
        targets: Targets::parse("cpu").unwrap(),
        weights: Policy::Used,
        shapes: Vec::new(),
        overridable: true,
        tuning: Vec::new(),
    };
    let compile = |path: &Path, out: &Path, stop: u64| {
        let mut told = Vec::new();
        let mut progress = |step: &str, done: u64, total: u64| {
            told.push((step.to_owned(), done, total));
            done < stop
        };
        let result = compile_model(
            &compiled.environment,
            Source::Path(path),
            &options(&[]),
            &wanted,
            out,
            &mut progress,
        );
        (result.err().map(|e| (e.status, e.message)), told)
    };
    let (error, _) = compile(&compiled.artifact, &compiled.artifact, 9);
    assert!(error.unwrap().1.contains("is an artifact already"));
    for stop in 0..3 {
        let (error, told) = compile(&compiled.model, &compiled.artifact, stop);
        assert_eq!(error.unwrap().0, Status::Cancelled);
        assert_eq!(told.last().map(|(_, done, total)| (*done, *total)), Some((stop, 3)));
    }
    assert_eq!(
        compile(&compiled.folder.0.join("no.onnx"), &compiled.artifact, 9).0.unwrap().0,
        Status::NotFound
    );
    assert_eq!(compile(&compiled.model, Path::new("/no/such/folder/a.rukh"), 9).0.unwrap().0, Status::Io);
    assert!(before == std::fs::read(&compiled.artifact).unwrap());
    assert_eq!(std::fs::read_dir(&compiled.folder.0).unwrap().count(), 2);
    for (model, part) in [
        (options(&[("optimized_model_path", "/tmp/x.onnx")]), "optimized_model_path"),
        (
            SessionOptions {
                given: crate::model::Given {
                    initializers: BTreeMap::from([("k".to_owned(), Tensor::zeros(I64, &[1]).unwrap())]),
                    ..Default::default()
                },
                ..options(&[])
            },
            "cannot be given for an artifact",
        ),
    ] {
        let error = compiled.open(&compiled.artifact, &model).err().unwrap();
        assert!(error.status == Status::Unsupported && error.message.contains(part), "{error}");
    }
}

#[test]
fn every_damage_is_noticed() {
    let compiled = Compiled::new("damage", &network(), "cpu,gfx1100", Policy::Used, &options(&[]));
    let whole = std::fs::read(&compiled.artifact).unwrap();
    let environment = compiled.environment.clone();
    let open = |bytes: &[u8]| {
        let session = Session::open(environment.clone(), Source::Bytes(bytes), &options(&[]));
        session.err().map(|error| (error.status, error.message))
    };
    assert_eq!(open(&whole), None);
    let damaged = |bytes: &[u8], part: &str| {
        let (status, message) = open(bytes).unwrap_or((Status::Internal, "it was opened".to_owned()));
        assert!(status == Status::InvalidModel && message.contains(part), "{part}: {message}");
    };
    let noticed = |bytes: &[u8]| {
        let (_, message) = open(bytes).expect("a change is noticed");
        assert!(
            ["its part \"", "its table", "belong to no part"].iter().any(|p| message.contains(p)),
            "{message}"
        );
    };
    // Each byte of the header; without the first eight it is no artifact at all.
    for at in 0..128 {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        damaged(
            &bytes,
            match at {
                0..8 => "",
                8..12 => "version",
                12..16 => "byte order",
                _ => "its header is damaged: it does not match its checksum",
            },
        );
    }
    let mut big_endian = whole.clone();
    big_endian[12..16].reverse();
    damaged(&big_endian, "big-endian");
    let mut future = whole.clone();
    future[8] = 2;
    damaged(&future, "it has version 2 of the file format");
    // Bytes all over the file, and lengths.
    for i in 0..100 {
        let at = 128 + (whole.len() - 129) * i / 99;
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        noticed(&bytes);
        damaged(&whole[..at], "it was cut short");
    }
    damaged(&[&whole[..], b"more"].concat(), "something was added to it");
    // Pages that changed places.
    let pages = whole.len() / 4096;
    for (one, other) in (1..pages).flat_map(|one| (one + 1..pages).map(move |other| (one, other))).take(60) {
        let mut bytes = whole.clone();
        let (low, high) = bytes.split_at_mut(other * 4096);
        low[one * 4096..(one + 1) * 4096].swap_with_slice(&mut high[..4096]);
        if bytes != whole {
            noticed(&bytes);
        }
    }
}
