//! Operations that fail: what is said must be what is on the disk.

use std::io::ErrorKind;

use serde_json::{Value, json};

use crate::{
    crash::{Fault, Faulty},
    support::*,
};

const KINDS: [ErrorKind; 4] =
    [ErrorKind::StorageFull, ErrorKind::ReadOnlyFilesystem, ErrorKind::PermissionDenied, ErrorKind::Other];

#[test]
fn a_failed_operation_is_told_as_it_is() {
    for kind in KINDS {
        for fault in [Fault::Refuse(kind), Fault::DoneButFailed(kind)] {
            for point in 0..500 {
                let bench = Bench::new();
                let index = start(&bench.store(), "alpha").unwrap();
                let (file_system, counter) = Faulty::new(fault, point);
                let outcome = advance(&bench.store_on(file_system), &index);
                let found = read(&bench.store(), &index).unwrap().seq;
                match &outcome {
                    Ok(seq) => assert_eq!(found, *seq, "{fault:?} {point}"),
                    Err(refusal) => {
                        let told = ["WRITE_FAILED", "KEY_UNREADABLE"].contains(&refusal.code);
                        assert!(told, "{fault:?} {point}: {}", refusal.text());
                        if refusal.details.get("changed") == Some(&json!(false)) {
                            assert_eq!(found, 0, "{fault:?} {point}: {}", refusal.text());
                        } else if refusal.code == "WRITE_FAILED" {
                            assert_eq!(refusal.details.get("changed"), Some(&Value::Null));
                        }
                    }
                }
                assert_eq!(advance(&bench.store(), &index).unwrap(), found + 1);
                if !counter.has_struck() {
                    break;
                }
            }
        }
    }
}

#[test]
fn an_interrupted_operation_is_repeated() {
    for point in 0..500 {
        let bench = Bench::new();
        let (file_system, counter) = Faulty::new(Fault::Refuse(ErrorKind::Interrupted), point);
        let store = bench.store_on(file_system);
        let index = start(&store, "alpha").unwrap_or_else(|r| panic!("{point}: {}", r.text()));
        assert_eq!(advance(&store, &index).unwrap(), 1, "{point}");
        if !counter.has_struck() {
            return;
        }
    }
}
