//! The hot functions, each by itself: `cargo bench -p distributary-load`. Times are for comparing two builds on one machine; what may
//! fail a build is counted in instructions (`loadtest/gate/run`).

#![expect(missing_docs, reason = "what the macros of criterion write has none")]

#[path = "../src/hot.rs"]
mod hot;

use criterion::{Criterion, criterion_group, criterion_main};

fn steps(criterion: &mut Criterion) {
    for (name, make) in hot::STEPS {
        criterion.bench_function(name, |bencher| {
            let mut step = make();
            bencher.iter(&mut step);
        });
    }
}

criterion_group!(benches, steps);
criterion_main!(benches);
