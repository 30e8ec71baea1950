// SPDX-License-Identifier: Apache-2.0
//! Bad, missing and duplicate files do not replace good content.

use super::*;

/// I-05: whatever happens to a file, its last good content stays until other good content replaces it.
#[test]
fn a_bad_file_never_replaces_a_good_state() {
    let folder = Folder::new();
    let path = folder.path("c.yaml");
    let mut file_set = file_set(&path);
    let (none, found) = look(&mut file_set);
    assert!(none.is_empty() && !file_set.content().whole());
    assert!(found.new_faults[0].contains("c.yaml: No such file"), "{found:?}");
    assert!(look(&mut file_set).1.new_faults.is_empty(), "a fault is told once");
    folder.place("c.yaml", &clusters(&["a/one"]));
    assert_eq!(look(&mut file_set).0, ["a/one"]);
    assert!(file_set.content().whole() && file_set.faults().is_empty());
    let torn = clusters(&["a/two", "b/two"]);
    for bad in [
        "",
        "  \n",
        "# all gone\n",
        &torn[..torn.len() / 2],
        "\u{0}",
        "{}",
        "resources: [{}]",
    ] {
        folder.place("c.yaml", bad);
        let (kept, found) = look(&mut file_set);
        assert_eq!(kept, ["a/one"], "{bad:?}");
        assert_eq!(
            (found.changed, file_set.faults().len()),
            (false, 1),
            "{bad:?}: {found:?}"
        );
        assert!(file_set.faults()[0].contains("c.yaml:"), "{:?}", file_set.faults());
    }
    folder.remove("c.yaml");
    assert_eq!(look(&mut file_set).0, ["a/one"]);
    assert!(file_set.faults()[0].contains("No such file"));
    folder.place("c.yaml", &clusters(&["a/three"]));
    assert_eq!(look(&mut file_set).0, ["a/three"]);
    assert!(file_set.faults().is_empty());
    folder.place("c.yaml", "resources: []\n");
    assert_eq!(look(&mut file_set).0, [""; 0], "an empty state is one");
    assert!(file_set.content().whole());
}

/// I-06: a resource that is written again with the same content stays the same object; the version in a file is ignored.
#[test]
fn equal_content_is_no_change() {
    let folder = Folder::new();
    let mut file_set = file_set(&folder.write("c.yaml", &clusters(&["a", "b"])));
    look(&mut file_set);
    let of = |file_set: &FileSet, text: &str| file_set.content().resource(&cds(), &name(text)).unwrap().clone();
    let (a, b) = (of(&file_set, "a"), of(&file_set, "b"));
    folder.place("c.yaml", &format!("version_info: '2'\n{}", clusters(&["b", "a/new"])));
    look(&mut file_set);
    assert!(Arc::ptr_eq(&b, &of(&file_set, "b")) && !Arc::ptr_eq(&a, &of(&file_set, "a")));
}

/// A directory is the sum of its files: a removed file takes its resources along, a bad one keeps its last good content.
#[test]
fn directories() {
    let folder = Folder::new();
    folder.write("1.yaml", &clusters(&["a"]));
    folder.write("2.yml", &clusters(&["b"]));
    folder.write(
        "3.json",
        r#"[{"@type":"type.googleapis.com/envoy.config.cluster.v3.Cluster","name":"c","altStatName":"x"}]"#,
    );
    folder.write("README.md", "nothing of ours");
    folder.write(".hidden.yaml", "nothing of ours");
    folder.write("4.yaml~", "nothing of ours");
    std::fs::create_dir(folder.path("below")).unwrap();
    let mut file_set = file_set(&folder.0);
    assert_eq!(look(&mut file_set).0, ["a/x", "b/x", "c/x"]);
    assert_eq!((file_set.files(), file_set.faults().len()), (3, 0));
    folder.place("1.yaml", "broken: [");
    folder.place("2.yml", &clusters(&["b/new"]));
    assert_eq!(look(&mut file_set).0, ["a/x", "b/new", "c/x"], "the others go on");
    folder.remove("1.yaml");
    assert_eq!(look(&mut file_set).0, ["b/new", "c/x"]);
    folder.place("5.yaml", "broken: [");
    assert_eq!(look(&mut file_set).0, ["b/new", "c/x"]);
    assert!(file_set.content().whole(), "a new bad file was never part of it");
    folder.remove("5.yaml");
    folder.remove("2.yml");
    folder.remove("3.json");
    assert_eq!(
        look(&mut file_set).0,
        ["b/new", "c/x"],
        "an emptied directory says nothing"
    );
    assert!(
        file_set.faults()[0].contains("no file in it ends in"),
        "{:?}",
        file_set.faults()
    );
    std::fs::remove_dir_all(&folder.0).unwrap();
    assert_eq!(look(&mut file_set).0, ["b/new", "c/x"]);
    std::fs::create_dir(&folder.0).unwrap();
    folder.write("3.json", "[]");
    assert_eq!(look(&mut file_set).0, [""; 0]);
}
