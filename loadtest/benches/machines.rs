// SPDX-License-Identifier: Apache-2.0
//! The hot functions, each by itself: `cargo bench -p distributary-load`. Use the times to compare two builds on one machine. The
//! limits that can fail a build are in instructions (`loadtest/gate/run`).

#[path = "../src/measure/hot.rs"]
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
