//! What a run ends with: figures of a measurement, or findings of a story.

use crate::findings::Findings;
use crate::record::Recorder;
use crate::report::Report;

#[derive(Debug)]
pub(crate) enum Outcome {
    Figures(Box<Report>),
    Findings(Findings),
    /// All of it is in the record.
    Played,
}

impl Outcome {
    /// Writes into the record what was found besides what is in it already.
    pub(crate) fn pour(&self, recorder: &Recorder) {
        match self {
            Self::Figures(report) => {
                report.failures.iter().for_each(|failure| recorder.fail(failure, None));
                if let Some(relay) = &report.relay
                    && let (Some(encoded), Some(responses)) = (relay.encoded_bodies, relay.responses)
                {
                    let joins = relay.encoded_bodies_join.unwrap_or_default();
                    recorder.note("bodies encoded while the others joined", joins);
                    recorder.note("bodies encoded for changes", encoded);
                    recorder.note("responses with changes", responses);
                }
            }
            Self::Findings(findings) => findings.pour(recorder),
            Self::Played => {}
        }
    }
}
