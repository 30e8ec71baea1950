// SPDX-License-Identifier: Apache-2.0
//! Snapshots: what is written is read back, a damaged file is refused, and a failing disk does no harm.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use distributary::proto::envoy::service::discovery::v3::{Resource as Wrapper, resource::CacheControl};
use distributary::protocol::Holds;
use distributary::snapshot::{Choice, Decoder, Folder, SnapshotError, SnapshotIdentity, give, read, write};
use distributary::xds::{
    Changes, Cut, Expiry, GuardSettings, HeldRemoval, Hold, HoldClock, HoldReason, HoldTimes, Known, Name, Older,
    Phase, Reason, Resource, ResourceParts, State, TypeUrl, Types, Update, Within,
};
use prost::Message;
use xxhash_rust::xxh3::xxh3_128;

const RTDS: &str = "type.googleapis.com/envoy.service.runtime.v3.Runtime";
const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const EDS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
const SDS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "some instant")]
    Instant::now()
}

fn of() -> SnapshotIdentity {
    SnapshotIdentity {
        server: "cp:1".to_owned(),
        class: "rule 0, cluster=\"é\"".to_owned(),
    }
}

/// A new directory for a test.
fn dir(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("snapshot-{name}"));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

fn put(type_url: &str, name: &str, aliases: &[&str], passed_on: &[u8], body: &[u8], ttl: bool) -> Update {
    let parts = ResourceParts {
        type_url: &TypeUrl::new(type_url),
        name: name.into(),
        aliases: aliases.iter().map(|alias| Name::from(*alias)).collect(),
        passed_on,
        body,
        endpoints: (type_url == CDS).then(|| Name::from("endpoints")),
        received: now(),
    };
    let expiry = ttl.then(|| Expiry {
        at: now() + Duration::from_secs(60),
        beat: 1,
    });
    Update::Put(Arc::new(Resource::new(parts, 0)), expiry)
}

fn with(cut: &Cut, type_url: &str, wildcard: Option<bool>, updates: Vec<Update>) -> Cut {
    let changes = Changes {
        type_url: TypeUrl::new(type_url),
        wildcard: wildcard.is_some(),
        updates,
        complete: wildcard,
        answered: Some(true),
        phase: Phase::Steady,
    };
    cut.with(&changes).0
}

/// Another relay is given, and takes, no secrets unless both want that, and nothing that it may not have. A wildcard without it is not
/// complete.
#[test]
fn what_another_relay_is_given() {
    let resources = vec![
        put(CDS, "a", &[], &[], b"a", false),
        put(CDS, "hidden", &[], &[], b"b", false),
    ];
    let cut = with(&Cut::default(), CDS, Some(true), resources);
    let cut = with(&cut, SDS, None, vec![put(SDS, "key", &[], &[], b"key", false)]);
    let names = |secrets: bool, may: &dyn Fn(&TypeUrl, &Resource) -> bool, takes: bool| {
        let mut bytes = Vec::new();
        give(&mut bytes, &of(), &cut, Choice { secrets, may }).unwrap();
        let (length, bytes) = bytes.split_first_chunk().unwrap();
        assert_eq!(u64::from_le_bytes(*length), bytes.len() as u64);
        let mut decoder = Decoder::new(&Types::default(), now(), takes);
        // However it comes.
        for part in bytes.chunks(7) {
            decoder.feed(part).unwrap();
        }
        let found = decoder.finish().unwrap();
        assert_eq!(found.of, of());
        let slots = found.cut.slots().map(|(_, slot)| slot);
        let states = slots.flat_map(|slot| slot.wildcard.iter().chain([&slot.named]));
        let all = states.flat_map(|state| state.entries().iter().map(|(name, _)| name.as_str().to_owned()));
        let all = all.collect::<Vec<_>>().join(" ");
        let mut slots = found.cut.slots();
        let whole = slots.find_map(|(_, slot)| Some(slot.wildcard.as_ref()?.complete()));
        (all, whole)
    };
    let all = |_: &TypeUrl, _: &Resource| true;
    let some = |_: &TypeUrl, one: &Resource| one.name().as_str() != "hidden";
    assert_eq!(names(true, &all, true), ("a hidden key".to_owned(), Some(true)));
    assert_eq!(names(true, &all, false), ("a hidden".to_owned(), Some(true)));
    assert_eq!(names(false, &all, true), ("a hidden".to_owned(), Some(true)));
    assert_eq!(names(true, &some, true), ("a key".to_owned(), Some(false)));
}

fn metadata() -> Vec<u8> {
    let wrapper = Wrapper {
        cache_control: Some(CacheControl { do_not_cache: false }),
        metadata: Some(Default::default()),
        ..Wrapper::default()
    };
    wrapper.encode_to_vec()
}

fn cut() -> Cut {
    let cut = with(
        &Cut::default(),
        CDS,
        Some(true),
        vec![
            put(CDS, "a", &["x", "y"], &metadata(), b"body", false),
            put(CDS, "b", &[], &[], b"", false),
        ],
    );
    with(
        &cut,
        EDS,
        None,
        vec![
            put(EDS, "e", &[], &[], b"endpoints", false),
            Update::Absent("said".into(), Reason::Said),
            Update::Absent("silent".into(), Reason::TimedOut),
        ],
    )
}

/// A state, as text.
fn line(state: &State) -> String {
    let one = |(name, known): (&Name, &Known)| match known {
        Known::Present(found) => {
            let aliases: Vec<_> = found.aliases().iter().map(Name::as_str).collect();
            format!(
                "{name}{aliases:?}={}@{}>{:?}",
                String::from_utf8_lossy(&found.body()),
                found.version(),
                found.endpoints()
            )
        }
        Known::Absent(reason) => format!("{name}:{reason:?}"),
        Known::Held(version) => format!("{name} is held in {version:?}"),
    };
    let known: Vec<String> = state.entries().iter().map(one).collect();
    format!("{} {}", known.join(" "), state.complete())
}

fn lines(cut: &Cut) -> Vec<String> {
    let slot = |(type_url, slot): (&TypeUrl, &xds::Slot)| {
        let wildcard = slot.wildcard.as_ref().map(|state| line(state));
        format!("{type_url:?} {wildcard:?} {}", line(&slot.named))
    };
    cut.slots().map(slot).collect()
}

fn reread(path: &Path, cut: &Cut, secrets: bool) -> Cut {
    write(path, &of(), cut, secrets).unwrap();
    let found = read(path, &Types::default(), now()).unwrap();
    assert_eq!(found.of, of());
    found.cut
}

/// K-09: names, aliases, content and so versions are read back; names that timed out are not.
#[test]
fn what_goes_in_comes_out() {
    let path = dir("whole").join("one.snapshot");
    let expected = with(&cut(), EDS, None, vec![Update::Forget("silent".into())]);
    assert_eq!(lines(&reread(&path, &cut(), false)), lines(&expected));
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "nobody else reads it");
    assert_eq!(lines(&reread(&path, &Cut::default(), false)), Vec::<String>::new());
}

/// F-16: of a file that the version before wrote, resources for some clients only are skipped.
#[test]
fn what_was_for_some_clients_is_skipped() {
    let path = dir("variants").join("one.snapshot");
    write(&path, &of(), &cut(), false).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    // The name `b`, and that it is for all clients.
    let head = [&[1, 0, 0, 0, b'b'][..], &[0; 4]].concat();
    let at = bytes.windows(head.len()).position(|part| part == head).unwrap() + 5;
    bytes.splice(at..at + 4, [4, 0, 0, 0].into_iter().chain(*b"some"));
    let end = bytes.len() - 16;
    let sum = xxh3_128(&bytes[..end]).to_le_bytes();
    bytes.splice(end.., sum);
    fs::write(&path, bytes).unwrap();
    let forgotten = with(&cut(), EDS, None, vec![Update::Forget("silent".into())]);
    let expected = with(&forgotten, CDS, Some(true), vec![Update::Forget("b".into())]);
    assert_eq!(
        lines(&read(&path, &Types::default(), now()).unwrap().cut),
        lines(&expected)
    );
}

/// Older content is read back with who uses it and which software accepted it; secrets are in memory only.
#[test]
fn older_content_comes_back() {
    let path = dir("older").join("one.snapshot");
    let all = vec![older(CDS, &["one", "two"]), older(SDS, &["one"]), older(RTDS, &[])];
    let found = reread(&path, &cut().with_older(all.clone()), true);
    let found: Vec<&Older> = found.older().iter().collect();
    assert_eq!(found.len(), 2);
    for (found, written) in found.iter().zip([&all[0], &all[2]]) {
        assert_eq!((&found.type_url, found.name()), (&written.type_url, written.name()));
        assert_eq!(found.content.version(), written.content.version());
        assert_eq!((found.content.accepted(), &found.keepers), (5, &written.keepers));
        assert!(found.since < now() - Duration::from_secs(90));
    }
}

/// The version before wrote what kinds of clients reject in the place of older content: the rest of such a file is read.
#[test]
fn what_the_version_before_condemned_is_skipped() {
    let of = SnapshotIdentity {
        server: "cp".to_owned(),
        class: "-".to_owned(),
    };
    let cut = cut().with_older(vec![older(CDS, &["no such filter"])]);
    let mut bytes = Vec::new();
    give(&mut bytes, &of, &cut, Choice::all(true)).unwrap();
    // The length comes first.
    drop(bytes.drain(..8));
    let none = "0".repeat(32);
    let at = bytes.windows(32).position(|found| found == none.as_bytes()).unwrap();
    bytes[at + 31] = b'7';
    let end = bytes.len() - 16;
    let sum = xxh3_128(&bytes[..end]);
    bytes[end..].copy_from_slice(&sum.to_le_bytes());
    let mut decoder = Decoder::new(&Types::default(), now(), true);
    decoder.feed(&bytes).unwrap();
    let read = decoder.finish().unwrap().cut;
    assert!(read.older().is_empty());
    let path = dir("condemned").join("one.snapshot");
    assert_eq!(lines(&read), lines(&reread(&path, &cut, true)));
}

fn older(url: &str, keepers: &[&str]) -> Older {
    let type_url = TypeUrl::new(url);
    let parts = ResourceParts {
        type_url: &type_url,
        name: "a".into(),
        aliases: Vec::new(),
        passed_on: &[],
        body: b"older",
        endpoints: None,
        received: now(),
    };
    let content = Arc::new(Resource::new(parts, 0));
    content.note_accepted(5);
    Older {
        type_url,
        content,
        since: now() - Duration::from_secs(100),
        keepers: keepers.iter().map(|id| Arc::from(*id)).collect(),
        refers: true,
    }
}

/// A judgement and a reference that hold something.
fn holds() -> Vec<Hold> {
    let time = |seconds| Duration::from_secs(seconds);
    let removal = |since: u64, until: Option<u64>| HeldRemoval {
        since: now() - time(since),
        until: until.map(|until| now() + time(until)),
        by: None,
        emptied: false,
        wildcard: true,
        extended: until.map(|until| (now() + time(until), "mended soon".into())),
    };
    let hold = |reason, removals: Vec<(&str, HeldRemoval)>| Hold {
        type_url: TypeUrl::new(CDS),
        reason,
        judgement: (reason == HoldReason::Mass).then_some(3),
        clock: (reason == HoldReason::Mass).then_some(HoldClock::standing(time(10))),
        removals: removals
            .into_iter()
            .map(|(name, removal)| (Name::from(name), removal))
            .collect(),
    };
    vec![
        hold(
            HoldReason::Mass,
            vec![("a", removal(50, Some(3600))), ("b", removal(5, Some(10)))],
        ),
        hold(HoldReason::Referenced, vec![("c", removal(1, None))]),
    ]
}

/// What is held is read back with its times; what was over meanwhile is over.
#[test]
fn holds_come_back() {
    let path = dir("holds").join("one.snapshot");
    let holds = holds();
    let time = Duration::from_secs;
    let found = reread(&path, &cut().with_holds(holds.clone()), false);
    assert_eq!(
        lines(&found),
        lines(&with(&cut(), EDS, None, vec![Update::Forget("silent".into())]))
    );
    let near = |one: Instant, other: Instant| one.max(other) - one.min(other) < time(2);
    assert_eq!(found.holds().len(), 2);
    for (found, written) in found.holds().iter().zip(&holds) {
        let key = |hold: &Hold| (hold.type_url.clone(), hold.reason, hold.judgement);
        assert_eq!(key(found), key(written));
        for ((name, found), (of, written)) in found.removals.iter().zip(&written.removals) {
            let why = |held: &HeldRemoval| held.extended.clone().map(|(_, why)| why);
            assert_eq!((name, found.wildcard, why(found)), (of, written.wildcard, why(written)));
            assert!(near(found.since, written.since), "{name}");
            assert_eq!(found.until.is_some(), written.until.is_some());
            assert!(
                found
                    .until
                    .zip(written.until)
                    .is_none_or(|(found, written)| near(found, written)),
                "{name}"
            );
        }
    }
}

/// D-10: while the server is away, clocks stand, and nobody is shown an end. What is left of one, and until when a person holds something,
/// is read back nevertheless. An earlier version did not write it: there the whole time is left.
#[test]
fn a_clock_that_stands_comes_back() {
    let path = dir("standing").join("one.snapshot");
    let near = |one: Duration, other: Duration| one.abs_diff(other) < Duration::from_secs(2);
    let mut holds = holds();
    holds.truncate(1);
    holds[0].clock = Some(HoldClock {
        absences: 3,
        ..HoldClock::standing(Duration::from_secs(100))
    });
    let (a, b) = (Name::from("a"), Name::from("b"));
    for name in [&a, &b] {
        let removal = holds[0].removals.get_mut(name).unwrap();
        (removal.until, removal.extended) = (None, None);
    }
    let found = reread(&path, &cut().with_holds(holds.clone()), false);
    let clock = found.holds()[0].clock.unwrap();
    assert!(near(clock.left, Duration::from_secs(100)), "{clock:?}");
    assert_eq!((clock.runs, clock.absences), (None, 3));

    let until = now() + Duration::from_secs(3600);
    holds[0].removals.get_mut(&a).unwrap().extended = Some((until, "mended".into()));
    let found = reread(&path, &cut().with_holds(holds.clone()), false);
    let (found, why) = found.holds()[0].removals[&a].extended.clone().unwrap();
    assert!(near(found - now(), until - now()) && &*why == "mended");

    holds[0].removals.get_mut(&a).unwrap().extended = None;
    holds[0].clock = None;
    let found = reread(&path, &cut().with_holds(holds), false);
    assert_eq!(found.holds()[0].clock.unwrap().left, Duration::MAX);
}

/// E-11, F-17: secrets, resources with a time to live and those that must not be cached are left out; then the wildcard is
/// incomplete.
#[test]
fn what_must_not_outlive_the_relay_is_left_out() {
    let path = dir("less").join("one.snapshot");
    let forbidden = Wrapper {
        cache_control: Some(CacheControl { do_not_cache: true }),
        ..Wrapper::default()
    };
    let forbidden = forbidden.encode_to_vec();
    for (name, update) in [
        ("ttl", put(CDS, "c", &[], &[], b"1", true)),
        ("do_not_cache", put(CDS, "c", &[], &forbidden, b"1", false)),
    ] {
        let found = reread(&path, &with(&cut(), CDS, Some(true), vec![update]), false);
        let slot = found.slot(&TypeUrl::new(CDS)).unwrap();
        let state = slot.wildcard.as_ref().unwrap();
        assert_eq!((state.present(), state.complete()), (2, false), "{name}");
    }
    let secret = with(
        &Cut::default(),
        SDS,
        None,
        vec![put(SDS, "key", &[], &[], b"secret-bytes", false)],
    );
    assert!(reread(&path, &secret, false).slots().next().is_none());
    assert!(
        !fs::read(&path)
            .unwrap()
            .windows(12)
            .any(|window| window == b"secret-bytes")
    );
    assert_eq!(lines(&reread(&path, &secret, true)), lines(&secret));
}

fn refusal(path: &Path, bytes: &[u8]) -> SnapshotError {
    fs::write(path, bytes).unwrap();
    read(path, &Types::default(), now()).unwrap_err()
}

#[track_caller]
fn is_broken(path: &Path, bytes: &[u8]) {
    let refused = refusal(path, bytes);
    assert!(matches!(refused, SnapshotError::Broken { .. }), "{refused:?}");
}

/// A change of any byte or of the length is found: nothing of a torn or changed file is used.
#[test]
fn a_torn_or_changed_file_is_refused() {
    let path = dir("torn").join("one.snapshot");
    write(&path, &of(), &cut(), true).unwrap();
    let whole = fs::read(&path).unwrap();
    for len in 0..whole.len() {
        is_broken(&path, &whole[..len]);
    }
    for at in 0..whole.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut changed = whole.clone();
            changed[at] ^= flip;
            is_broken(&path, &changed);
        }
    }
    let longer = [whole.as_slice(), &[0]].concat();
    is_broken(&path, &longer);
}

/// What is held, as the version before wrote it: no end of a clock that stands; and as the one before that did: no number of a judgement, and
/// what kinds of clients reject. It is read as a whole, or not at all.
#[test]
fn a_torn_file_of_the_version_before_is_refused() {
    let mut holds = holds();
    for hold in &mut holds {
        hold.clock = None;
        for name in ["a", "b", "c"].map(Name::from) {
            if let Some(removal) = hold.removals.get_mut(&name) {
                (removal.until, removal.extended) = (None, None);
            }
        }
    }
    let cut = cut()
        .with_holds(holds)
        .with_older(vec![older(CDS, &["no such filter"])]);
    let mut bytes = Vec::new();
    give(&mut bytes, &of(), &cut, Choice::all(true)).unwrap();
    // The length comes first, and the checksum last.
    drop(bytes.drain(..8));
    bytes.truncate(bytes.len() - 16);
    let find = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).position(|found| found == part);
    while let Some(at) = find(&bytes, b"\x06\0\0\0mass-3") {
        bytes.splice(at..at + 10, *b"\x04\0\0\0mass");
    }
    let at = find(&bytes, "0".repeat(32).as_bytes()).unwrap();
    bytes[at + 31] = b'7';
    let sum = xxh3_128(&bytes).to_le_bytes();
    bytes.extend(sum);
    let path = dir("before").join("one.snapshot");
    fs::write(&path, &bytes).unwrap();
    let found = read(&path, &Types::default(), now()).unwrap().cut;
    let held = found
        .holds()
        .iter()
        .map(|hold| (hold.judgement, hold.clock.map(|clock| clock.left), hold.removals.len()));
    let held: Vec<_> = held.collect();
    assert_eq!(held, [(Some(1), Some(Duration::MAX), 2), (None, None, 1)]);
    assert!(found.older().is_empty() && found.slots().count() == 2);
    for len in 0..bytes.len() {
        is_broken(&path, &bytes[..len]);
    }
}

/// A file that the program wrote before absences were in it, while a judgement and a reference held something.
#[test]
fn a_file_of_the_program_before() {
    let bytes = include_bytes!("held.snapshot");
    let path = dir("program-before").join("one.snapshot");
    fs::write(&path, bytes).unwrap();
    let found = read(&path, &Types::default(), now()).unwrap().cut;
    let held = found.holds().iter().map(|hold| {
        let names: Vec<&str> = hold.removals.keys().map(Name::as_str).collect();
        (hold.judgement, hold.clock, names.join(" "))
    });
    let held: Vec<_> = held.collect();
    let over = Some(HoldClock::standing(Duration::ZERO));
    assert_eq!(
        held,
        [(Some(1), over, "c4 c5 c6".to_owned()), (None, None, "c0".to_owned())]
    );
    for len in 0..bytes.len() {
        is_broken(&path, &bytes[..len]);
    }
}

/// D-10: after an absence a clock has a minute left at least, five times, however often the relay restarts meanwhile.
#[test]
fn restarts_do_not_prolong_a_clock_for_ever() {
    let seconds = Duration::from_secs;
    let path = dir("restarts").join("one.snapshot");
    let settings = GuardSettings {
        references: true,
        within: Within::FirstState,
        hold: HoldTimes::all(seconds(300)),
        unready: seconds(60),
    };
    let mut cut = reread(&path, &cut().with_holds(holds()), false);
    let mut holds: Vec<Hold> = cut.holds()[..1].to_vec();
    for name in ["a", "b"].map(Name::from) {
        holds[0].removals.get_mut(&name).unwrap().extended = None;
    }
    let (mut at, mut restarts) = (now(), 0);
    while !holds.is_empty() {
        restarts += 1;
        assert!(restarts < 20, "{holds:?}");
        let mut table = Holds::new(Duration::ZERO, seconds(2), settings);
        table.remember(&holds, at);
        at += seconds(20);
        // The server has nothing of the type.
        let lost = ["a", "b"].map(|name| Update::Forget(name.into()));
        let said = Changes {
            complete: Some(true),
            answered: Some(true),
            phase: Phase::Last,
            ..Changes::of((TypeUrl::new(CDS), true), lost.into())
        };
        table.hear(&mut vec![said], &cut, || None, at);
        for _ in 0..50 {
            at += seconds(1);
            table.hear(&mut Vec::new(), &cut, || None, at);
            table.look(&cut, None, |_, _| false, at);
        }
        table.handle_server(false, at);
        let (mut told, _) = table.take_told().unwrap();
        told.retain(|hold| hold.reason == HoldReason::Mass);
        cut = reread(&path, &cut.with_holds(told), false);
        holds = cut.holds().to_vec();
    }
    assert!(restarts > 5, "{restarts}");
}

/// A forged file with a valid checksum: the reader trusts no length in it, and does not panic.
#[test]
fn a_forged_file_does_no_harm() {
    let path = dir("forged").join("one.snapshot");
    write(&path, &of(), &cut().with_holds(holds()), true).unwrap();
    let whole = fs::read(&path).unwrap();
    let content = &whole[..whole.len() - 16];
    let summed = |content: &[u8]| [content, &xxh3_128(content).to_le_bytes()].concat();
    let mut refused = 0;
    for at in 0..content.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut changed = content.to_vec();
            changed[at] = value;
            fs::write(&path, summed(&changed)).unwrap();
            refused += usize::from(read(&path, &Types::default(), now()).is_err());
        }
        refused += usize::from(matches!(
            refusal(&path, &summed(&content[..at])),
            SnapshotError::Broken { .. }
        ));
        let huge = [&content[..at], &[0xff; 4], &content[at..]].concat();
        fs::write(&path, summed(&huge)).unwrap();
        refused += usize::from(read(&path, &Types::default(), now()).is_err());
    }
    assert!(refused > content.len() * 2, "{refused} of {}", content.len() * 6);
}

/// The error names the file, the place and what to do.
#[test]
fn a_refusal_says_what_is_wrong() {
    let dir = dir("words");
    let path = dir.join("one.snapshot");
    let words = |bytes: &[u8]| {
        let error = refusal(&path, bytes).to_string();
        error.strip_prefix(&format!("{}: ", path.display())).unwrap().to_owned()
    };
    assert_eq!(words(b"something else"), "byte 0: this is not a snapshot of a relay");
    assert_eq!(words(b""), "byte 0: this is not a snapshot of a relay");
    let old = "byte 8: its format is 1, but this relay reads only format 2";
    assert_eq!(words(b"xdssnap\n\x01\0\0\0 and so on"), old);
    let torn = words(b"xdssnap\n\x02\0\0\0 and so on, and on");
    assert!(torn.contains("it is incomplete or was changed"), "{torn}");
    let error = read(&dir, &Types::default(), now()).unwrap_err().to_string();
    let kind = "cannot be read: it is not a regular file, or is larger than 16 GiB; check its owner and mode";
    assert!(error.ends_with(kind), "{error}");
}

/// A file under the name of another view is not used for this one.
#[test]
fn a_foreign_file_is_refused() {
    let dir = dir("foreign");
    let folder = Folder::new(dir.join("new/one"), false, 0);
    assert!(folder.load(&of(), &Types::default(), now()).unwrap().is_none());
    folder.save(&of(), &cut()).unwrap();
    assert!(folder.load(&of(), &Types::default(), now()).unwrap().is_some());
    let other = SnapshotIdentity {
        server: "cp:2".to_owned(),
        ..of()
    };
    fs::copy(folder.path(&of()), folder.path(&other)).unwrap();
    let error = folder.load(&other, &Types::default(), now()).unwrap_err().to_string();
    assert!(error.contains("this is the snapshot of server cp:1 for"), "{error}");
}

/// A disk that cannot be written: an error, and the previous file is still there and whole.
#[test]
fn a_failed_write_leaves_the_last_one() {
    let dir = dir("failed");
    let path = dir.join("one.snapshot");
    write(&path, &of(), &cut(), false).unwrap();
    // A directory that is not empty has the path of the next file.
    fs::create_dir_all(path.with_extension("tmp").join("taken")).unwrap();
    let error = write(&path, &of(), &Cut::default(), false).unwrap_err().to_string();
    assert!(
        error.contains("cannot be written") && error.contains("snapshot.dir"),
        "{error}"
    );
    let found = read(&path, &Types::default(), now()).unwrap().cut;
    assert!(found.slots().next().is_some());
    // A file is no directory.
    let saved = Folder::new(path, false, 0).save(&of(), &cut());
    assert!(matches!(saved, Err(SnapshotError::Write { .. })));
}

/// A half-written file of a killed run is replaced.
#[test]
fn what_a_killed_run_left_is_replaced() {
    let path = dir("killed").join("one.snapshot");
    fs::write(path.with_extension("tmp"), b"xdssnap").unwrap();
    assert!(reread(&path, &cut(), false).slots().next().is_some());
    assert!(!path.with_extension("tmp").exists());
}

/// Clients determine which views exist, so the number of files of closed views is limited.
#[test]
fn old_files_are_pruned() {
    let dir = dir("pruned");
    let folder = Folder::new(dir, false, 3);
    let of = |server: u32| SnapshotIdentity {
        server: server.to_string(),
        class: String::new(),
    };
    for server in 0..6 {
        folder.save(&of(server), &cut()).unwrap();
    }
    let open = [folder.path(&of(0)), folder.path(&of(1))].into();
    folder.prune(&open).unwrap();
    let left = folder.all().unwrap();
    assert_eq!(left.len(), 3);
    assert!(open.iter().all(|path| left.contains(path)));
}
