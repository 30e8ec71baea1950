// SPDX-License-Identifier: Apache-2.0
//! The vocabulary: plain values, which can be compared, ordered and hashed, and do nothing.
//!
//! Owns the types that every other module uses (types, names, resources, what is known of them, what a client holds, who may have what).
//! Knows nothing of connections, clocks, locks and who is asking.

mod access;
mod answers;
mod batch;
mod bucket;
mod changes;
mod cut;
mod deflated;
mod difference;
mod expression;
mod guard;
mod handover;
mod hold_words;
mod interest;
mod name;
mod objection;
mod older;
mod other_views;
mod owners;
mod pieces;
mod printable;
mod references;
mod rejection;
mod resource;
mod resource_error;
mod room;
mod server_features;
mod server_words;
mod sight;
mod spelling;
mod spot;
mod standing;
mod state;
mod twins;
mod type_url;
mod value_id;
mod version;
mod viewer;
mod worded;

pub mod xdstp;

pub use access::{Access, AccessRule, Caller, Denied, Explanation, Grant, Question, Rights, Way, is_secret};
pub use answers::{Answers, Unshared, full_state};
pub use batch::{Batch, Dialect, Errors, Form, Item};
pub use bucket::{BUCKETS, bucket};
pub use changes::{Changes, Phase, Update};
pub use cut::{Cut, ServerState, Slot};
pub use deflated::Deflated;
pub use difference::{Difference, GONE_MAX, Part, Portion};
pub use expression::Expression;
pub use guard::{
    GuardSettings, Guards, HeldRemoval, Hold, HoldAction, HoldChange, HoldClock, HoldEnd, HoldEvent, HoldOrder,
    HoldReason, HoldTarget, HoldTimes, Link, Referrer, Within,
};
pub use handover::takers;
pub use hold_words::{HoldCause, HoldWords, OLDER_WORDS, one_or_several};
pub use interest::{Dirty, Target, Want};
pub use name::Name;
pub use objection::{Objection, Said, Sensitive, named_in, words_of};
pub use older::{Holds, Older, Refusal, Stance};
pub use other_views::{Neighbour, OtherViews, ViewPlace};
pub use owners::{Owners, authority_label};
pub use printable::{INVISIBLE, is_escaped, printable, printable_json};
pub use references::{References, is_empty_assignment};
pub use rejection::Rejection;
pub use resource::{Resource, ResourceParts, WRAPPER_URL, field_len, put_field, put_key_len};
pub use resource_error::{ResourceError, Trouble};
pub use room::Room;
pub use server_features::ServerFeatures;
pub use server_words::ServerWords;
pub use sight::{Sight, TypeSight};
pub use spelling::meant;
pub use spot::{Spot, Spots};
pub use standing::{ClientResource, ClientType, Depth, Standing, Status};
pub use state::{Expiry, Known, Permitted, Reason, State};
pub use twins::Twins;
pub use type_url::{Kind, NameRule, NoType, Traits, TypeUrl, Types};
pub use version::{Brief, Hasher, Version, hex};
pub use viewer::Viewer;
