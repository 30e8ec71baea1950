// SPDX-License-Identifier: Apache-2.0
//! The configuration in effect, and the parts that take a new one while the relay runs.
//!
//! Owns the swap: the one place where new settings reach running parts. Decides nothing: which keys can change is in `changes`.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::admin::Guard;
use crate::app::fleet::Fleet;
use crate::app::listening::Listening;
use crate::app::plan;
use crate::census::Census;
use crate::clock;
use crate::config::Config;
use crate::downstream::Shared;
use crate::inquiry::{ClientStream, Depth, Question, Whom};
use crate::telemetry::ProcessLog;
use crate::xds::{Caller, Dialect, Grant, TypeUrl, Way};

/// The configuration in effect.
pub(in crate::app) struct Live {
    pub(in crate::app) config: Arc<ArcSwap<Config>>,
    /// K-25: the mark by which the relay recognizes itself.
    pub(in crate::app) mark: String,
    pub(in crate::app) shared: Arc<Shared>,
    pub(in crate::app) fleet: Arc<Fleet>,
    pub(in crate::app) guard: Guard,
    pub(in crate::app) listening: Listening,
    pub(in crate::app) log: Arc<ProcessLog>,
}

impl Live {
    /// Returns the configuration in effect. Parts that look at it rarely read it here and need no line in [`Self::swap`].
    pub(in crate::app) fn config(&self) -> Arc<Config> {
        self.config.load_full()
    }

    /// Returns how many streams of clients the rules of another configuration end (S-07).
    pub(super) async fn ended_by(&self, new: &Config) -> usize {
        let named = new.named();
        let mut streams = Census::new(self.shared.scopes.clone()).ask(Question {
            whom: Whom::default(),
            depth: Depth::Types,
        });
        let mut ended = 0;
        while let Some(ClientStream {
            node,
            identity,
            dialect,
            service,
            ..
        }) = streams.next().await
        {
            let texts: Vec<&str> = identity.texts().collect();
            let caller = Caller {
                identity: &texts,
                node: &node,
                way: match dialect {
                    Dialect::Sotw => Way::Sotw,
                    Dialect::Delta => Way::Delta,
                },
            };
            let stays = identity.knows(&named).is_ok()
                && new.access.rights(&caller).is_ok_and(|rights| {
                    let nothing =
                        |of: &TypeUrl| rights.as_ref().is_some_and(|rights| rights.grant(of) == Grant::Nothing);
                    !service.is_some_and(|of| nothing(&of))
                });
            ended += usize::from(!stays);
        }
        ended
    }

    /// Gives all parts their settings from this configuration. None of this can fail: what can fail is checked before.
    pub(super) fn swap(&self, config: Config) {
        let before = self.config();
        let config = Arc::new(config);
        let shared = &self.shared;
        // S-11: before the rules that name it.
        shared.tokens.name(config.named());
        shared.scopes.set_classes(config.classes.clone());
        plan::hold(&shared.scopes, &config);
        shared.settings.store(Arc::new(plan::downstream(&config, &self.mark)));
        shared.admission.set(plan::admission(&config.limits), clock::now());
        shared.budget.set_largest(plan::reading_bytes(&config));
        shared.library.set_chunk(config.chunk);
        if before.issuers != config.issuers {
            shared.tokens.set(&config.issuers);
        }
        self.guard.set(&config);
        shared.scopes.set(plan::views(&config), config.limits.views);
        self.listening.set(&config);
        // A level that was set by hand stays until the file has another one.
        if before.log_filter != config.log_filter
            && let Err(error) = self.log.set(config.log_filter.as_str())
        {
            tracing::error!(%error, "the log level stays as it is");
        }
        self.fleet.set(&config);
        self.config.store(config.clone());
        // Which servers a rule has follows from both.
        if before.upstream != config.upstream || before.classes != config.classes {
            shared.scopes.reroute(self.fleet.take(&config, clock::now()));
        } else if !Arc::ptr_eq(&before.access, &config.access) {
            shared.scopes.call_sessions();
        }
    }
}
