// SPDX-License-Identifier: Apache-2.0
//! Which sessions a view wakes, what upstream is asked for, and what is forgotten.

use super::*;

/// A session wants very many names, and goes: the writer is told in slices, and those that somebody else wants stay.
#[test]
fn very_many_names_begin_and_end_in_slices() {
    let (view, now) = (view_of(0), start());
    let names: Vec<String> = (0..10_000).map(|n| format!("n{n}")).collect();
    let many = seat(&view, &eds(), &names.iter().map(String::as_str).collect::<Vec<_>>());
    let other = seat(&view, &eds(), &["n5"]);
    let mut begun = 0;
    while begun < 10_000 {
        let told = view.take_wants(now).len();
        assert!(
            (1..1_500).contains(&told) && view.demand().is_behind() == (begun + told < 10_000),
            "{told} at once"
        );
        begun += told;
    }
    drop(many);
    let (mut turns, mut ended) = (0, Vec::new());
    let later = now + LINGER * 2;
    while ended.len() < 9_999 && turns < 80 {
        let at = if turns < 32 { now } else { later };
        let told = asked(&view.take_wants(at));
        assert!(told.len() < 1_000, "{} at once", told.len());
        ended.extend(told);
        turns += 1;
    }
    assert!(
        ended.len() == 9_999 && !ended.contains(&"-eds n5".to_owned()),
        "{}",
        ended.len()
    );
    view.publish(&[named(&eds(), vec![put(&eds(), "n5", "1"), put(&eds(), "n6", "1")])]);
    assert_eq!(heard(&other), ["eds n5"]);
    drop(other);
    let _ = view.take_wants(later);
    assert_eq!(asked(&view.take_wants(later + LINGER * 2)), ["-eds n5"]);
    assert!(view.demand().is_idle());
}

/// C-22, G-03: sessions that asked by itself for a name that its complete collection lacks are told. It stays absent for them, even when the collection is no longer wanted; other absent names are forgotten.
#[test]
fn what_is_missing_in_a_collection_stays_missing() {
    let (view, now) = (view(), start());
    let [all, missing, there, other] = ["*", "missing", "there", "other"].map(|name| {
        let type_name = "envoy.config.endpoint.v3.ClusterLoadAssignment";
        format!("xdstp://a/{type_name}/{name}")
    });
    let collector = seat(&view, &eds(), &[&all, &other]);
    let waits = seat(&view, &eds(), &[&missing]);
    let _ = view.take_wants(now);
    let whole = Update::Whole(Name::from(all.as_str()));
    view.publish(&[named(&eds(), vec![put(&eds(), &there, "1"), whole])]);
    let rung = waits.bell().take();
    assert!(
        matches!(&rung[..], [(_, Dirty::Names(names))] if names.iter().any(|name| name.as_str() == missing)),
        "{rung:?}"
    );
    let known = |name: &str| {
        let cut = view.cut();
        cut.slot(&eds()).and_then(|slot| slot.known(&Name::from(name)).cloned())
    };
    let is_missing = |name: &str| matches!(known(name), Some(Known::Absent(Reason::Said)));
    assert!(is_missing(&missing) && is_missing(&other) && known(&there).is_some());
    drop(collector);
    let _ = view.take_wants(now);
    let _ = view.take_wants(now + LINGER * 2);
    assert!(is_missing(&missing), "{:?}", known(&missing));
    assert!(known(&other).is_none() && known(&all).is_none() && !is_missing(&there));
}

/// F-17: nothing of a resource that may not be cached is kept once it is no longer wanted.
#[test]
fn what_may_not_be_cached_does_not_linger() {
    let (view, now) = (view(), start());
    let seat = seat(&view, &eds(), &["a", "b"]);
    let _ = view.take_wants(now);
    let parts = ResourceParts {
        type_url: &eds(),
        name: Name::from("a"),
        aliases: Vec::new(),
        passed_on: &[0x3a, 0x02, 0x08, 0x01],
        body: b"1",
        endpoints: None,
        received: now,
    };
    let fleeting = Update::Put(Arc::new(Resource::new(parts, 0)), None);
    view.publish(&[named(&eds(), vec![fleeting, put(&eds(), "b", "1")])]);
    assert_eq!(asked(&view.take_wants(now)), [""; 0]);
    drop(seat);
    assert_eq!(asked(&view.take_wants(now)), ["-eds a"]);
    let cut = view.cut();
    let slot = cut.slot(&eds()).expect("b lingers");
    assert!(slot.known(&Name::from("a")).is_none() && slot.known(&Name::from("b")).is_some());
}

#[test]
fn exactly_those_are_told_whom_it_concerns() {
    let view = view();
    let (a, b, all) = (
        seat(&view, &eds(), &["a"]),
        seat(&view, &eds(), &["b", "c"]),
        seat(&view, &eds(), &["*"]),
    );
    let other = seat(&view, &cds(), &["a", "*"]);
    let heard_by = |expected: [&[&str]; 4]| assert_eq!([&a, &b, &all, &other].map(heard), expected);

    view.publish(&[named(&eds(), vec![put(&eds(), "a", "1"), put(&eds(), "nobody's", "1")])]);
    heard_by([&["eds a"], &[], &[], &[]]);
    // K-05: sessions that wait for a name are woken by either half, those of the wildcard only for what it covers.
    view.publish(&[covered(
        &eds(),
        vec![put(&eds(), "b", "1"), put(&eds(), "c", "1"), put(&eds(), "d", "1")],
    )]);
    heard_by([&[], &["eds b", "eds c"], &["eds wildcard"], &[]]);
    // K-09, B-21: unchanged content that comes again is no change, and nothing gets a new identity.
    let before = view.cut();
    view.publish(&[
        covered(&eds(), vec![put(&eds(), "b", "1")]),
        named(&eds(), vec![put(&eds(), "a", "1")]),
    ]);
    heard_by([&[], &[], &[], &[]]);
    assert!(Arc::ptr_eq(&before, &view.cut()));
    // K-15: completeness, and whether the server has answered, decide the state of names that are not there.
    let complete = whole(&eds(), Vec::new());
    view.publish(std::slice::from_ref(&complete));
    heard_by([&["eds all"], &["eds all"], &["eds all"], &[]]);
    let answered = |answered| Changes {
        answered: Some(answered),
        ..named(&eds(), vec![absent("b")])
    };
    view.publish(&[complete, answered(true)]);
    heard_by([&["eds all"], &["eds all"], &["eds all"], &[]]);
    view.publish(&[answered(true)]);
    heard_by([&[], &[], &[], &[]]);
    view.publish(&[answered(false)]);
    heard_by([&["eds all"], &["eds all"], &["eds all"], &[]]);
}

/// K-16: after a warm start the server confirms each half of a type by itself; whoever waits for one is woken, and it is published.
#[test]
fn each_half_is_confirmed_by_itself() {
    let view = view();
    let all = seat(&view, &cds(), &["*"]);
    let whole = |updates| whole(&cds(), updates);
    drop(view.publish_restored(&[whole(vec![put(&cds(), "a", "1")]), named(&cds(), vec![absent("b")])]));
    assert_eq!(heard(&all), ["cds all"]);
    let stale = |half: fn(&xds::Slot) -> bool| view.cut().slot(&cds()).is_some_and(half);
    let covered_stale = |slot: &xds::Slot| slot.wildcard.as_ref().is_some_and(|state| state.stale());
    assert!(stale(covered_stale) && stale(|slot| slot.named.stale()));
    view.publish(&[whole(Vec::new())]);
    assert!(!stale(covered_stale) && stale(|slot| slot.named.stale()));
    assert_eq!(heard(&all), ["cds all"]);
}

/// C-20: while the wildcard has other content, it is not known what an alias stands for. Once it has lost that, or has the same, those
/// who wait for the alias are told.
#[test]
fn an_alias_waits_for_the_wildcard() {
    let aliased = |body: &[u8]| Update::Put(resource(&addresses(), "a", &["alias"], body), None);
    for end in [Update::Forget(Name::from("a")), absent("a"), aliased(b"2")] {
        let view = view();
        let (by_alias, _all) = (seat(&view, &addresses(), &["alias"]), seat(&view, &addresses(), &["*"]));
        view.publish(&[covered(&addresses(), vec![put(&addresses(), "a", "1")])]);
        view.publish(&[named(&addresses(), vec![aliased(b"2")])]);
        let known = || {
            let cut = view.cut();
            let slot = cut.slot(&addresses()).expect("it has content");
            slot.known(&Name::from("alias")).is_some()
        };
        assert!(!known() && heard(&by_alias) == ["istio_address alias"]);
        view.publish(&[covered(&addresses(), vec![end])]);
        assert!(known() && heard(&by_alias) == ["istio_address alias"]);
    }
}

/// C-20: a session can wait for a canonical name or an alias, and the resource is kept while any of its names is leased.
#[test]
fn aliases_ring_and_keep() {
    let (view, now) = (view(), start());
    let (by_alias, by_other) = (
        seat(&view, &addresses(), &["alias"]),
        seat(&view, &addresses(), &["other"]),
    );
    let _ = view.take_wants(now);
    let aliased = |body: &[u8]| Update::Put(resource(&addresses(), "a", &["alias", "other"], body), None);
    view.publish(&[named(&addresses(), vec![aliased(b"1")])]);
    assert_eq!(
        [heard(&by_alias), heard(&by_other)],
        [["istio_address alias"], ["istio_address other"]]
    );
    drop(by_alias);
    let _ = view.take_wants(now);
    assert_eq!(asked(&view.take_wants(now + LINGER * 2)), ["-istio_address alias"]);
    assert_eq!(heard(&by_other), [""; 0]);
    assert_eq!(view.summary().types, [(addresses(), 1, view.summary().types[0].2)]);
    // Losing an alias is a change for sessions that asked by it.
    view.publish(&[named(&addresses(), vec![put(&addresses(), "a", "2")])]);
    assert_eq!(heard(&by_other), ["istio_address other"]);
}

/// K-23: what is foreseen is asked for although nobody wants it. It lingers, and nobody seems to wait for it.
#[test]
fn what_is_foreseen_is_asked_for() {
    let (view, now) = (view(), start());
    let first = seat(&view, &eds(), &["a"]);
    first.foresee(&cds());
    first.foresee(&cds());
    assert_eq!(asked(&view.take_wants(now)), ["+cds *", "+eds a"]);
    assert_eq!(view.unanswered().len(), 1, "only a client waits");
    first.foresee(&cds());
    assert_eq!(asked(&view.take_wants(now + LINGER / 2)), [""; 0]);
    assert_eq!(asked(&view.take_wants(now + LINGER * 2)), ["-cds *"]);
    assert!(!view.demand().is_idle());

    // Who comes to want it finds it asked for, and it stays.
    first.foresee(&cds());
    assert_eq!(asked(&view.take_wants(now)), ["+cds *"]);
    let second = seat(&view, &cds(), &["*"]);
    assert_eq!(asked(&view.take_wants(now + LINGER * 2)), [""; 0]);
    drop((first, second));
    let _ = view.take_wants(now);
    let _ = view.take_wants(now + LINGER * 2);
    assert!(view.demand().is_idle());
}

/// Where nothing lingers, nothing is asked for that nobody wants.
#[test]
fn without_linger_nothing_is_foreseen() {
    let view = View::new(
        Class::default(),
        ViewSettings {
            linger: Duration::ZERO,
            ..settings()
        },
    );
    let first = seat(&view, &eds(), &["a"]);
    first.foresee(&cds());
    assert_eq!(asked(&view.take_wants(start())), ["+eds a"]);
    drop(first);
    let _ = view.take_wants(start());
    assert!(view.demand().is_idle());
}

#[test]
fn a_wildcard_lingers_and_is_forgotten_as_a_whole() {
    let (view, now) = (view(), start());
    let (all, b) = (seat(&view, &cds(), &["*"]), seat(&view, &cds(), &["b"]));
    assert_eq!(asked(&view.take_wants(now)), ["+cds *", "+cds b"]);
    view.publish(&[covered(&cds(), vec![put(&cds(), "a", "1"), put(&cds(), "b", "1")])]);
    drop(all);
    let _ = view.take_wants(now);
    let _ = heard(&b);
    assert_eq!(asked(&view.take_wants(now + LINGER * 2)), ["-cds *"]);
    assert_eq!(heard(&b), ["cds all"], "its name was covered, and is not any more");
    let cut = view.cut();
    let slot = cut.slot(&cds()).expect("b is still wanted");
    assert!(slot.wildcard.is_none() && slot.known(&Name::from("b")).is_none());
}

#[test]
fn names_are_bounded_and_the_error_names_the_key() {
    let (view, now) = (view_of(3), start());
    let first = seat(&view, &eds(), &["a", "b"]);
    let other = seat(&view, &eds(), &["c"]);
    let second = seat(&view, &eds(), &["a"]);
    let refused = second.want(&want(&eds(), "d", true)).expect_err("there is no room");
    assert_eq!(
        refused.to_string(),
        "limits.names_per_view of 3 is reached; raise it if so many are intended"
    );
    assert_eq!((refused.limit, refused.value), ("names_per_view", 3));
    let _ = view.take_wants(now);

    // Lingering names give way to wanted ones.
    drop((first, other));
    let _ = view.take_wants(now);
    second.want(&want(&eds(), "d", true)).expect("b and c are nobody's");
    assert_eq!(asked(&view.take_wants(now)), ["-eds b", "-eds c", "+eds d"]);
    let summary = view.summary();
    assert_eq!((summary.seats, summary.wanted, summary.leased), (1, 2, 2));
    let third = seat(&view, &eds(), &["e"]);
    assert!(third.want(&want(&eds(), "f", true)).is_err());
}

/// The writer's task sleeps until a session wants something, and until a timer is due.
#[tokio::test(start_paused = true)]
async fn the_writer_is_told_when_to_come() {
    let (view, now) = (view(), start());
    let come = || tokio::time::timeout(Duration::from_secs(1), view.mailbox().changed());
    assert!(come().await.is_err());
    let seat = seat(&view, &eds(), &["a"]);
    assert!(come().await.is_ok());
    assert!(come().await.is_err());
    let _ = view.take_wants(now);
    drop(seat);
    assert!(come().await.is_ok());
}

/// F-07: the writer is told of each spelling of a name once, whichever sessions use it, and again after all of them have gone.
#[test]
fn every_way_of_writing() {
    let type_url = TypeUrl::new("envoy.config.endpoint.v3.ClusterLoadAssignment");
    let full = |text: &str| format!("xdstp://a/{}/{text}", type_url.full_name());
    let view = view();
    let told = |now: Instant| -> Vec<String> {
        let wants = view.take_wants(now).into_iter();
        let text = |want: Want| {
            let text = want
                .written
                .map_or_else(|| format!("{:?}", want.target), |text| text.to_string());
            let text = text.rsplit('/').next().unwrap_or_default().trim_end_matches(['"', ')']);
            format!("{}{text}", if want.wanted { "+" } else { "-" })
        };
        wants.map(text).collect()
    };
    let now = start();
    let one = seat(&view, &type_url, &[&full("a%20b")]);
    assert_eq!(told(now), ["+a%20b"]);
    let two = seat(&view, &type_url, &[&full("a b")]);
    let three = seat(&view, &type_url, &[&full("a%20b"), &full("a%20%62")]);
    assert_eq!(told(now), ["+a b", "+a%20%62"]);
    let four = seat(&view, &type_url, &[&full("c"), &full("%63")]);
    assert_eq!(told(now), ["+c", "+%63"]);
    drop((one, two, three, four));
    assert!(told(now).is_empty());
    assert_eq!(told(now + Duration::from_secs(60)), ["-a b", "-c"]);
    let _one = seat(&view, &type_url, &[&full("a b")]);
    assert_eq!(told(now + Duration::from_secs(60)), ["+a b"]);
}

/// a resource without a name is kept as long as any name of its type is wanted, and rings for each of them.
#[test]
fn what_has_no_name() {
    let type_url = TypeUrl::new("istio.networking.nds.v1.NameTable");
    let view = view();
    let now = start();
    let one = seat(&view, &type_url, &["x"]);
    let two = seat(&view, &type_url, &["y"]);
    drop(view.take_wants(now));
    drop(view.publish(&[named(&type_url, vec![put(&type_url, "", "1")])]));
    let found = |name: &str| {
        let cut = view.cut();
        cut.slot(&type_url)
            .and_then(|slot| slot.resource(&name.into()).cloned())
            .is_some()
    };
    assert!(found("x") && found("y") && found("z"));
    drop(one);
    drop(view.take_wants(now));
    drop(view.take_wants(now + Duration::from_secs(60)));
    assert!(found("y"));
    drop(two);
    drop(view.take_wants(now + Duration::from_secs(60)));
    drop(view.take_wants(now + Duration::from_secs(120)));
    assert!(!found("y"));
}
