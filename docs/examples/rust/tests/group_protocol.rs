use std::env;
use std::process::{Command, Stdio};

/// The smoke scenarios, in a quarter of a minute: `cargo test`.
#[test]
fn keeps_the_group_protocol_in_short() {
    test_broker(&["--smoke"]);
}

/// Everything, in some minutes: `cargo test -- --ignored`.
#[test]
#[ignore]
fn keeps_the_group_protocol() {
    test_broker(&[]);
}

/// Fencepost starts the broker as fencepost.toml says, and tests it. FENCEPOST is the command of the kit, such as
/// "python3 fencepost.pyz"; FENCEPOST_ARGS are further arguments.
fn test_broker(extent: &[&str]) {
    let kit = env::var("FENCEPOST").unwrap_or("fencepost".into());
    let more = env::var("FENCEPOST_ARGS").unwrap_or_default();
    let mut words = kit.split_whitespace();
    let run = Command::new(words.next().expect("FENCEPOST is empty"))
        .args(words)
        .args(["test", "--profile", "fencepost.toml"])
        .args(extent)
        .args(more.split_whitespace())
        .stderr(Stdio::inherit())
        .output()
        .expect("Fencepost is not installed");
    let report = String::from_utf8_lossy(&run.stdout);
    match run.status.code() {
        Some(0) => println!("{report}"),
        Some(1) => panic!("the broker violates the group protocol\n{report}"),
        Some(3) => panic!("the run was cut short, or something stayed undecided\n{report}"),
        _ => panic!("Fencepost could not run"),
    }
}
