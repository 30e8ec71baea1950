// SPDX-License-Identifier: Apache-2.0
//! What a view's server is told of the rejections of its clients (E-24).
//!
//! Owns the way between the view, which knows what clients reject, and the streams, whose machines say when the server is told.

use std::sync::Arc;

use super::leg::Leg;
use super::writer::Talk;
use crate::cache::View;

/// Tells the streams what clients have rejected and what they want to know of that, and notes what the server was told.
pub(super) fn turn<L: Talk>(view: &Arc<View>, talks: &mut [L; 2]) {
    let rejected = view.rejected().take();
    for talk in talks {
        talk.each_stream(&mut |leg: &mut Leg| {
            rejected.iter().for_each(|type_url| leg.rejected(type_url));
            for type_url in leg.take_questions() {
                leg.take_rejections(&type_url, &view.rejections(&type_url));
            }
            for reported in leg.take_reported() {
                let (cut, type_url) = (view.cut(), &reported.type_url);
                view.rejected()
                    .note_reported(&cut, type_url, reported.contents, reported.at);
            }
        });
    }
}
