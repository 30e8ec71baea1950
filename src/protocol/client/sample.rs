//! Whether a delta server reads the versions that it is sent (E-04).
//!
//! Owns what shows it: a resource that the server has just sent is brought on another stream, with its own version. Knows nothing of that
//! stream.

use std::sync::Arc;

use arcstr::ArcStr;

use super::Client;
use xds::{Changes, Resource, Target, TypeUrl, Update, Want};

/// A resource that the server has just sent, and all that it is brought with: in another form of the question it may be read differently.
#[derive(Debug)]
pub struct Sample {
    type_url: TypeUrl,
    resource: Arc<Resource>,
    target: Target,
    brought: Vec<(Arc<Resource>, ArcStr)>,
}

impl Sample {
    /// Whether this shows that the server does not read versions: it has sent the same again.
    #[must_use]
    pub fn is_failed_by(&self, update: &Update) -> bool {
        matches!(update, Update::Put(resource, _) if resource.same_content(&self.resource))
    }
}

impl Client {
    /// Returns what is to be tried, once for each type of a stream: an answer has left out what the server was sent versions of. That is
    /// unchanged, or gone and the server does not read versions.
    pub fn take_sample(&mut self) -> Option<Sample> {
        let stream = self.stream.as_mut()?;
        let type_url = stream.unsure.pop_first()?;
        // Another relay reads them.
        let feed = self.feeds.get(&type_url).filter(|_| !stream.relayed)?;
        let (resource, target, brought) = feed.sample()?;
        Some(Sample {
            type_url,
            resource,
            target,
            brought,
        })
    }

    /// On this stream, on which nothing is wanted yet, it is tried.
    pub fn handle_sample(&mut self, sample: &Sample) -> Vec<Changes> {
        self.tries = true;
        let changes = self.handle_want(&Want {
            type_url: sample.type_url.clone(),
            target: sample.target.clone(),
            wanted: true,
            written: None,
        });
        self.feed(&sample.type_url).bring_all(&sample.brought);
        changes
    }

    /// What was tried is over. Returns what is gone.
    pub fn handle_tried(&mut self, sample: &Sample, ignores: bool) -> Option<Changes> {
        let changes = self.feeds.get_mut(&sample.type_url)?.tried(ignores);
        self.note(&sample.type_url);
        changes
    }
}
