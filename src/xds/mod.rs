//! The vocabulary: values that are equal, ordered and hashed, and that do nothing.
//!
//! Owns the words that every other module speaks (types, names, resources, what is known of them, what a client holds).
//! Refuses to know connections, clocks, locks and who is asking.

pub mod answers;
pub mod authorities;
pub mod baseline;
pub mod batch;
pub mod changes;
pub mod classes;
pub mod constraints;
pub mod credentials;
pub mod cut;
pub mod difference;
pub mod held;
pub mod interest;
pub mod name;
pub mod node;
pub mod passes;
pub mod path;
mod pieces;
mod polled;
pub mod presented;
pub mod resource;
pub mod resource_error;
pub mod selector;
pub mod server_features;
pub mod sight;
pub mod state;
pub mod type_url;
pub mod version;
mod written;
pub mod xdstp;

pub use answers::{Answers, Unshared};
pub use authorities::Authorities;
pub use baseline::Baselines;
pub use batch::{Batch, Dialect, Errors, Form, Item, Texts};
pub use changes::{Changes, Update};
pub use classes::{Classes, Piece, Rule};
pub use constraints::{Audience, Choice, Constraints, Parameters};
pub use credentials::{CredentialFiles, Credentials, Unfit};
pub use cut::{Cut, Slot, Standing};
pub use difference::{Difference, Left, Part, Room};
pub use held::{Extra, Held, Seen};
pub use interest::{Dirty, Target, Want};
pub use name::Name;
pub use node::{Class, Features, Locality, Node};
pub use passes::{Member, Members, Parts, Passes, Taken};
pub use path::Path;
pub use presented::Presented;
pub use resource::{Resource, ResourceParts};
pub use resource_error::{ResourceError, Trouble};
pub use selector::Selector;
pub use server_features::ServerFeatures;
pub use sight::{Glimpse, Sight};
pub use state::{Chosen, Expiry, Known, Reason, State};
pub use type_url::{Kind, NameRule, Traits, TypeUrl, Types};
pub use version::Version;
