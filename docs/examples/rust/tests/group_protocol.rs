use std::env;
use std::process::Command;

/// Fencepost starts the broker as fencepost.toml says, and tests it. FENCEPOST is the command of the kit, such as
/// "python3 fencepost.pyz"; FENCEPOST_ARGS are further arguments.
#[test]
fn keeps_the_group_protocol() {
    let kit = env::var("FENCEPOST").unwrap_or("fencepost".into());
    let more = env::var("FENCEPOST_ARGS").unwrap_or_default();
    let mut words = kit.split_whitespace();
    let run = Command::new(words.next().expect("FENCEPOST is empty"))
        .args(words)
        .args(["test", "--profile", "fencepost.toml", "--quiet"])
        .args(more.split_whitespace())
        .output()
        .expect("Fencepost is not installed");
    let report = String::from_utf8_lossy(&run.stdout);
    let errors = String::from_utf8_lossy(&run.stderr);
    match run.status.code() {
        Some(0) => println!("{report}"),
        Some(1) => panic!("the broker violates the group protocol\n{report}"),
        Some(3) => panic!("something stayed undecided\n{report}"),
        _ => panic!("Fencepost could not run\n{report}{errors}"),
    }
}
