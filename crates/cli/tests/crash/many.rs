//! Many processes, and many calls of one, on one session: acknowledged = kept (spec 03 Appendix A).

use std::collections::BTreeSet;
use std::thread;

use serde_json::json;
use testkit::Sandbox;

use crate::{bounded, is_success, kept, sandbox, usage};

/// A session to write to.
fn session(sandbox: &Sandbox) -> String {
    let arguments = json!({"workflow_id": "mini", "planning_slug": "one"});
    sandbox.connect().call("start_session", arguments).json()["session_index"].as_str().unwrap().to_owned()
}

#[track_caller]
fn check(sandbox: &Sandbox, acknowledged: &BTreeSet<String>, calls: usize) {
    let kept = kept(&sandbox.folder("one"));
    println!("{calls} calls, {} acknowledged, {} kept", acknowledged.len(), kept.len());
    assert_eq!(*acknowledged, kept);
    assert_eq!(kept.len(), calls);
}

#[test]
fn processes_lose_nothing() {
    let (processes, calls) = (bounded(4, 8), bounded(40, 200));
    let sandbox = sandbox();
    let index = session(&sandbox);
    let acknowledged: BTreeSet<String> = thread::scope(|scope| {
        let writers: Vec<_> = (0..processes)
            .map(|writer| {
                let (sandbox, index) = (&sandbox, &index);
                scope.spawn(move || {
                    let mut client = sandbox.connect();
                    let labels = (0..calls).map(|nth| format!("{writer}-{nth}"));
                    // A call that waited for too long is refused without effect, and made again.
                    let mut told = |label: &String| loop {
                        let id = client.post("tools/call", usage(index, label));
                        let answer = client.answer(id).result();
                        if answer["isError"] == false {
                            return true;
                        }
                        println!("{label} is refused: {answer}");
                        assert_eq!(answer["_meta"]["error"]["code"], "SESSION_BUSY");
                    };
                    labels.filter(|label| told(label)).collect::<Vec<String>>()
                })
            })
            .collect();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    check(&sandbox, &acknowledged, processes * calls);
}

#[test]
fn calls_in_flight_lose_nothing() {
    let sandbox = sandbox();
    let index = session(&sandbox);
    let mut client = sandbox.connect();
    let sent: Vec<(u64, String)> =
        (0..64).map(|nth| (client.post("tools/call", usage(&index, &format!("{nth}"))), format!("{nth}"))).collect();
    let mut acknowledged = BTreeSet::new();
    for _ in 0..sent.len() {
        let answer = client.receive();
        let told = sent.iter().find(|(id, _)| answer["id"] == *id && is_success(&answer));
        acknowledged.extend(told.map(|(_, label)| label.clone()));
    }
    check(&sandbox, &acknowledged, 64);
}
