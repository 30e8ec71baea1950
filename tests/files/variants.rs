//! Variants of a name for some clients only (TP2), in files.

use distributary::xds::{Known, State};

use super::asked::Told;
use super::*;

const MEMBER: &str = "xdstp://x/envoy.config.cluster.v3.Cluster/d/";

/// `a/1`, or `a[prod]/1` for clients of one `env`: a name, its constraint, and its content.
fn entries(texts: &[&str]) -> String {
    let one = |text: &&str| {
        let (name, content) = text.split_once('/').unwrap();
        let (name, env) = name.split_once('[').unwrap_or((name, ""));
        let name = name.replace('$', MEMBER);
        let called = match env.trim_end_matches(']') {
            "" => format!("name: {name}"),
            env => format!(
                "resource_name:\n    name: {name}\n    dynamic_parameter_constraints: {{ constraint: {{ key: env, value: {env} }} }}"
            ),
        };
        format!(
            "- '@type': type.googleapis.com/envoy.service.discovery.v3.Resource\n  {called}\n  resource: {{ '@type': \
             type.googleapis.com/envoy.config.cluster.v3.Cluster, name: x, alt_stat_name: {content} }}\n"
        )
    };
    if texts.is_empty() {
        return "[]".to_owned();
    }
    texts.iter().map(one).collect()
}

/// Everything that is known, as `a=1 a{env=prod}=2 b:Said`.
fn line(state: &State) -> String {
    // The content is the last byte of the body.
    let content = |body: &[u8]| char::from(*body.last().unwrap());
    let mut words: Vec<String> = Vec::new();
    for (name, known) in state.entries() {
        words.push(match known {
            Known::Present(found) => format!("{name}={}", content(&found.body())),
            Known::Absent(reason) => format!("{name}:{reason:?}"),
        });
    }
    for (found, _) in state.variants() {
        let demands = found.constraints().unwrap();
        words.push(format!("{}{demands}={}", found.name(), content(&found.body())));
    }
    words.sort();
    words.join(" ").replace(MEMBER, "$")
}

fn named(told: &Told) -> String {
    line(&told.cut.slot(&cds()).unwrap().named)
}

fn covered(told: &Told) -> String {
    line(told.cut.slot(&cds()).unwrap().wildcard.as_ref().unwrap())
}

/// C-23, I-06: a resource in a file may have constraints. Each variant is added and removed by itself, however it was asked for.
#[test]
fn whatever_asks_for_them() {
    let mut told = Told::new(&entries(&["a/1", "a[prod]/2", "b[prod]/3", "$c[prod]/4", "$d/5"]));
    told.want(&cds(), "*", true);
    for name in ["a", "b", &format!("{MEMBER}*")] {
        told.want(&cds(), name, true);
    }
    assert_eq!(covered(&told), "a=1 a{env=prod}=2 b{env=prod}=3");
    assert_eq!(
        named(&told),
        "a=1 a{env=prod}=2 b:Said b{env=prod}=3 $c{env=prod}=4 $d=5"
    );
    let changed = told.write(&entries(&["a[prod]/6", "a[test]/7", "b[prod]/3", "$c[test]/8", "$d/5"]));
    assert_eq!(covered(&told), "a{env=prod}=6 a{env=test}=7 b{env=prod}=3");
    assert_eq!(
        named(&told),
        "a:Said a{env=prod}=6 a{env=test}=7 b:Said b{env=prod}=3 $c{env=test}=8 $d=5"
    );
    assert_eq!(changed, 3, "a in both halves, and c");
    told.want(&cds(), &format!("{MEMBER}*"), false);
    assert_eq!(named(&told), "a:Said a{env=prod}=6 a{env=test}=7 b:Said b{env=prod}=3");
    told.write("[]");
    assert_eq!(
        (covered(&told), named(&told)),
        (String::new(), "a:Said b:Said".to_owned())
    );
}

/// E-12: a name exists once for the same constraints; a second definition with other content does not replace the first.
#[test]
fn one_variant_twice() {
    let mut told = Told::new(&entries(&["a/1", "a[prod]/2"]));
    told.want(&cds(), "*", true);
    told.write(&entries(&["a/3", "a[prod]/4", "a[prod]/5", "a[test]/6"]));
    assert_eq!(covered(&told), "a=3 a{env=prod}=2 a{env=test}=6");

    let folder = Folder::new();
    let path = folder.write("x.yaml", &entries(&["a[prod]/1", "a[prod]/2"]));
    let mut file_set = file_set(&path);
    let found = look(&mut file_set);
    let words = found.1.new_faults.join(" ");
    assert!(words.contains("`a {env=prod}` is already in"), "{words}");
}

/// G-20: until all files were good once, a name without an unconstrained variant is unknown, even if it has other variants.
#[test]
fn unknown_until_whole() {
    let mut told = Told::new("broken: [");
    told.want(&cds(), "a", true);
    assert!(
        told.cut
            .slot(&cds())
            .is_none_or(|slot| slot.known(&name("a")).is_none())
    );
    told.write(&entries(&["a[prod]/1"]));
    assert_eq!(named(&told), "a:Said a{env=prod}=1");
}
