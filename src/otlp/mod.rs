// SPDX-License-Identifier: Apache-2.0
//! Metrics and traces to an OpenTelemetry collector, by OTLP. Silent unless the environment names one.
//!
//! Owns when they are sent, on a thread of its own, and what is kept for a collector that cannot be reached: of metrics nothing, because
//! every export has the sums since the start; of traces those that fit into a queue.
//!
//! Numbers, spans, samplers and messages are those of OpenTelemetry's crates; transport, queue and environment are the relay's own.
//! `opentelemetry-otlp` and the providers of `opentelemetry_sdk` (0.33) read the environment of the process alone, may wait for a
//! collector for seconds after the end of the program, and cannot end a span in the past; their meters know no exemplars.

mod collector;
mod described;
mod environment;
mod measured;
mod outlet;
mod queue;
mod refusal;
mod spans;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::metrics::v1::{ExportMetricsServiceRequest, ExportMetricsServiceResponse};
use opentelemetry_proto::tonic::resource::v1::Resource;
use tokio::sync::watch;

use environment::{CollectorTarget, Environment};
use outlet::{Delivery, Outlet};
use queue::Queue;

use crate::clock::{self, WallClock};
use crate::telemetry::{MetricFamily, Metrics, Traces};

/// How long the end of the program waits for the last export.
const LAST: Duration = Duration::from_secs(2);

/// The export of metrics and traces. Dropping it sends what there is once more and ends it.
#[derive(Debug)]
pub struct Export {
    stop: Option<watch::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Export {
    /// Starts what the environment asks for, or nothing. `read` returns the metrics as they are now.
    pub fn start(
        variable: impl Fn(&str) -> Option<String>,
        read: impl AsyncFn() -> Vec<MetricFamily> + Send + 'static,
        traces: &Arc<Traces>,
    ) -> io::Result<Option<Self>> {
        let environment = Environment::read(variable);
        for warning in &environment.warnings {
            tracing::warn!("OpenTelemetry: {warning}");
        }
        let resource = described::resource(&environment.attributes);
        let measures = environment.metrics.map(|target| {
            let interval = environment.interval;
            announce("metrics", &target, interval);
            let measures = Measures {
                resource: Resource {
                    attributes: resource.attributes.0.clone(),
                    ..Resource::default()
                },
                start: WallClock::read(),
                read,
                outlet: Outlet::new("metrics", target, interval),
            };
            (interval, measures)
        });
        let queue = environment.traces.map(|target| {
            let interval = environment.batches.delay;
            announce("traces", &target, interval);
            traces.start(environment.sampler);
            let outlet = Outlet::new("traces", target, interval);
            (
                interval,
                Queue::new(traces.clone(), resource, environment.batches, outlet),
            )
        });
        if measures.is_none() && queue.is_none() {
            return Ok(None);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = watch::channel(());
        let of_traces = stopped.clone();
        let thread = thread::Builder::new().name("otlp".to_owned()).spawn(move || {
            let exports = async { tokio::join!(measure(measures, stopped), trace(queue, of_traces)) };
            let ((), ()) = runtime.block_on(exports);
            // A name that is still being resolved must not hold up the end of the program.
            runtime.shutdown_background();
        })?;
        Ok(Some(Self {
            stop: Some(stop),
            thread: Some(thread),
        }))
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        drop(self.stop.take());
        // The thread ends within `LAST`; that it panicked was logged.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn announce(signal: &str, target: &CollectorTarget, interval: Duration) {
    let protocol = target.protocol.word();
    tracing::info!(endpoint = %target.uri, protocol, ?interval, "exporting {signal}");
}

/// Exports the metrics until the end, and then once more.
async fn measure<R: AsyncFn() -> Vec<MetricFamily>>(
    measures: Option<(Duration, Measures<R>)>,
    mut stopped: watch::Receiver<()>,
) {
    let Some((interval, mut measures)) = measures else {
        return;
    };
    while lasts(interval, &mut stopped, measures.export()).await {}
    let _ = clock::timeout(LAST, measures.send()).await;
}

/// Exports the traces until the end, and then those that are open.
async fn trace(queue: Option<(Duration, Queue)>, mut stopped: watch::Receiver<()>) {
    let Some((interval, mut queue)) = queue else { return };
    while lasts(interval, &mut stopped, queue.export()).await {}
    let _ = clock::timeout(LAST, queue.finish()).await;
}

/// Exports after a pause. Returns false at the end of the program, for which an export is given up.
async fn lasts(pause: Duration, stopped: &mut watch::Receiver<()>, export: impl Future<Output = ()>) -> bool {
    let exported = async {
        clock::sleep(pause).await;
        export.await;
    };
    tokio::select! {
        () = exported => true,
        _ = stopped.changed() => false,
    }
}

/// The metrics, and where they go.
struct Measures<R> {
    resource: Resource,
    start: WallClock,
    read: R,
    outlet: Outlet,
}

impl<R: AsyncFn() -> Vec<MetricFamily>> Measures<R> {
    async fn request(&self) -> ExportMetricsServiceRequest {
        let read = (self.read)().await;
        let now = WallClock::read();
        let metrics = measured::metrics(read, self.start.unix(self.start.now), now.unix(now.now));
        measured::request(self.resource.clone(), metrics)
    }

    /// Exports unless the collector is left alone.
    async fn export(&mut self) {
        if self.outlet.is_ready() {
            self.send().await;
        }
    }

    /// Nothing is kept of what the collector does not take: the next export has all of it.
    async fn send(&mut self) {
        let request = self.request().await;
        let Delivery::Taken(answer) = self.outlet.send(request).await else {
            return;
        };
        let answer: ExportMetricsServiceResponse = answer;
        if let Some(part) = answer.partial_success {
            self.outlet.took_a_part(part.rejected_data_points, &part.error_message);
        }
    }
}

/// Reads the metrics of the relay. `refresh` sets those that are only set when they are asked for.
pub fn reader(
    metrics: Arc<Metrics>,
    refresh: impl AsyncFn() + Send + 'static,
) -> impl AsyncFn() -> Vec<MetricFamily> + Send + 'static {
    async move || {
        refresh().await;
        metrics.families()
    }
}
