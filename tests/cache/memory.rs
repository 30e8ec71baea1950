// SPDX-License-Identifier: Apache-2.0
//! What subscriptions cost. Run with `cargo test --release --test cache -- --ignored --nocapture memory::subscriptions` for sets of
//! names that all differ; `SETS=shared` gives 20,000 sessions 200 sets.

#![expect(clippy::print_stdout, reason = "figures for people")]

use super::random::Random;
use super::*;

pub(super) fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<usize>().ok());
    kib.unwrap_or_default() * 1024
}

/// Prints the bytes per subscription in the index of a view, including what sessions hold of it.
#[test]
#[ignore = "prints figures and takes a while"]
fn subscriptions() {
    // Each case has a process of its own, because it would reuse the memory of the one before.
    match std::env::var("SETS").as_deref() {
        Ok("shared") => subscriptions_in(200),
        Ok(_) | Err(_) => subscriptions_in(20_000),
    }
}

fn subscriptions_in(distinct: u64) {
    let names: Vec<_> = (0..10_000)
        .map(|n| Name::from(format!("a-name-of-about-forty-bytes-like-many-{n}")))
        .collect();
    let settings = ViewSettings {
        names_per_view: 0,
        ..settings()
    };
    let view = View::new(Class::default(), settings);
    let wish = |name: &Name| Want {
        type_url: eds(),
        target: Target::Name(name.clone()),
        wanted: true,
        written: None,
    };
    let bare: Vec<_> = {
        let before = resident();
        let seats: Vec<_> = (0..20_000).map(|_| view.enter()).collect();
        println!(
            "{} bytes per seat without interest",
            (resident() - before) / seats.len()
        );
        seats
    };
    let warm = view.enter();
    names.iter().for_each(|name| assert_eq!(warm.want(&wish(name)), Ok(())));
    let before = resident();
    let begun = start();
    let mut count = 0;
    for (nth, seat) in (0..).zip(&bare) {
        let mut random = Random::new(nth % distinct);
        let any = (0..100).filter_map(|_| names.get(random.below(names.len())));
        for name in any {
            assert_eq!(seat.want(&wish(name)), Ok(()));
            count += 1;
        }
        // As when 1,000 sessions come in a second.
        if nth % 1000 == 999 {
            view.settle();
        }
    }
    let took = begun.elapsed().as_nanos() / count;
    let per = |bytes: usize| bytes as f64 / count as f64;
    println!(
        "{:.1} bytes and {took} ns per subscription ({count})",
        per(resident() - before)
    );
    let begun = start();
    let mut longest = Duration::ZERO;
    for _ in 0..100 {
        let begun = start();
        view.settle();
        longest = longest.max(begun.elapsed());
    }
    println!(
        "{:.1} bytes per subscription and {} sets at rest, {} ns per subscription to come to rest, {longest:?} at a time",
        per(resident() - before),
        view.summary().sets,
        begun.elapsed().as_nanos() / count,
    );
    let _ = view.take_wants(start());
    let begun = start();
    drop(bare);
    println!(
        "{} ns per subscription to drop a session",
        begun.elapsed().as_nanos() / count
    );
    drop(warm);
}
