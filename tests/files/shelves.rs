//! What bad, missing and double files do to what was good.

use super::*;

/// I-05: whatever becomes of a file, what was good of it stays until something good replaces it.
#[test]
fn a_bad_file_never_replaces_a_good_state() {
    let folder = Folder::new();
    let path = folder.path("c.yaml");
    let mut shelf = shelf(&path);
    let (none, found) = look(&mut shelf);
    assert!(none.is_empty() && !shelf.content().whole());
    assert!(found.new_faults[0].contains("c.yaml: No such file"), "{found:?}");
    assert!(look(&mut shelf).1.new_faults.is_empty(), "a fault is told once");
    folder.place("c.yaml", &clusters(&["a/one"]));
    assert_eq!(look(&mut shelf).0, ["a/one"]);
    assert!(shelf.content().whole() && shelf.faults().is_empty());
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
        let (kept, found) = look(&mut shelf);
        assert_eq!(kept, ["a/one"], "{bad:?}");
        assert_eq!((found.changed, shelf.faults().len()), (false, 1), "{bad:?}: {found:?}");
        assert!(shelf.faults()[0].contains("c.yaml:"), "{:?}", shelf.faults());
    }
    folder.remove("c.yaml");
    assert_eq!(look(&mut shelf).0, ["a/one"]);
    assert!(shelf.faults()[0].contains("No such file"));
    folder.place("c.yaml", &clusters(&["a/three"]));
    assert_eq!(look(&mut shelf).0, ["a/three"]);
    assert!(shelf.faults().is_empty());
    folder.place("c.yaml", "resources: []\n");
    assert_eq!(look(&mut shelf).0, [""; 0], "an empty state is one");
    assert!(shelf.content().whole());
}

/// I-06: what is written anew with the same content is the very same; the version that a file gives counts for nothing.
#[test]
fn equal_content_is_no_change() {
    let folder = Folder::new();
    let mut shelf = shelf(&folder.write("c.yaml", &clusters(&["a", "b"])));
    look(&mut shelf);
    let of = |shelf: &Shelf, text: &str| shelf.content().resource(&cds(), &name(text)).unwrap().clone();
    let (a, b) = (of(&shelf, "a"), of(&shelf, "b"));
    folder.place("c.yaml", &format!("version_info: '2'\n{}", clusters(&["b", "a/new"])));
    look(&mut shelf);
    assert!(Arc::ptr_eq(&b, &of(&shelf, "b")) && !Arc::ptr_eq(&a, &of(&shelf, "a")));
}

/// A directory is the sum of its files: what leaves takes its resources along, what is bad keeps its own.
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
    let mut shelf = shelf(&folder.0);
    assert_eq!(look(&mut shelf).0, ["a/x", "b/x", "c/x"]);
    assert_eq!((shelf.files(), shelf.faults().len()), (3, 0));
    folder.place("1.yaml", "broken: [");
    folder.place("2.yml", &clusters(&["b/new"]));
    assert_eq!(look(&mut shelf).0, ["a/x", "b/new", "c/x"], "the others go on");
    folder.remove("1.yaml");
    assert_eq!(look(&mut shelf).0, ["b/new", "c/x"]);
    folder.place("5.yaml", "broken: [");
    assert_eq!(look(&mut shelf).0, ["b/new", "c/x"]);
    assert!(shelf.content().whole(), "a new bad file was never part of it");
    folder.remove("5.yaml");
    folder.remove("2.yml");
    folder.remove("3.json");
    assert_eq!(
        look(&mut shelf).0,
        ["b/new", "c/x"],
        "an emptied directory says nothing"
    );
    assert!(
        shelf.faults()[0].contains("no file in it ends in"),
        "{:?}",
        shelf.faults()
    );
    std::fs::remove_dir_all(&folder.0).unwrap();
    assert_eq!(look(&mut shelf).0, ["b/new", "c/x"]);
    std::fs::create_dir(&folder.0).unwrap();
    folder.write("3.json", "[]");
    assert_eq!(look(&mut shelf).0, [""; 0]);
}

/// G-20: a first state of which a part is bad does not say what does not exist.
#[test]
fn a_part_is_not_the_whole() {
    let folder = Folder::new();
    folder.write("1.yaml", &clusters(&["a"]));
    folder.write("2.yaml", "broken: [");
    let mut shelf = shelf(&folder.0);
    assert_eq!(look(&mut shelf).0, ["a/x"]);
    assert!(!shelf.content().whole());
    folder.place("2.yaml", &clusters(&["b"]));
    assert_eq!(look(&mut shelf).0, ["a/x", "b/x"]);
    assert!(shelf.content().whole());
}

/// E-12: a name that is there twice with different content stays as it was; both places are named.
#[test]
fn names_that_are_there_twice() {
    let folder = Folder::new();
    folder.write("1.yaml", &clusters(&["a/one", "b"]));
    folder.write("2.yaml", &clusters(&["c"]));
    let mut shelf = shelf(&folder.0);
    look(&mut shelf);
    folder.place("2.yaml", &clusters(&["c", "a/two", "d"]));
    let (there, found) = look(&mut shelf);
    assert_eq!(there, ["a/one", "b/x", "c/x", "d/x"]);
    let said = &found.new_faults[0];
    assert!(
        said.contains("2.yaml:5:3: ") && said.contains("`a` is already in ") && said.contains("1.yaml:2:3"),
        "{said}"
    );
    assert_eq!(look(&mut shelf).1.new_faults.len(), 0);
    assert_eq!(shelf.faults().len(), 1, "it stays shown");
    folder.place("2.yaml", &clusters(&["c", "a/one"]));
    assert_eq!(
        look(&mut shelf).0,
        ["a/one", "b/x", "c/x"],
        "the same twice is the same"
    );
    assert!(shelf.faults().is_empty());
    folder.place("1.yaml", &clusters(&["b"]));
    assert_eq!(
        look(&mut shelf).0,
        ["a/one", "b/x", "c/x"],
        "it has moved to the other file"
    );
    folder.place("3.yaml", &clusters(&["new/one"]));
    folder.place("4.yaml", &clusters(&["new/two"]));
    assert_eq!(
        look(&mut shelf).0,
        ["a/one", "b/x", "c/x"],
        "of two that are new neither counts"
    );
    folder.remove("3.yaml");
    assert_eq!(look(&mut shelf).0, ["a/one", "b/x", "c/x", "new/two"]);
    folder.place("1.yaml", &clusters(&["b/one", "b/two"]));
    assert_eq!(
        look(&mut shelf).0,
        ["a/one", "b/x", "c/x", "new/two"],
        "twice in one file"
    );
}

/// I-04: a mounted ConfigMap is a directory of symlinks into one that is swapped.
#[test]
fn a_config_map() {
    let folder = Folder::new();
    let version = |version: &str, files: &[(&str, &str)]| {
        std::fs::create_dir(folder.path(version)).unwrap();
        for (file, cluster) in files {
            folder.write(&format!("{version}/{file}"), &clusters(&[cluster]));
        }
        std::os::unix::fs::symlink(version, folder.path("..data_tmp")).unwrap();
        std::fs::rename(folder.path("..data_tmp"), folder.path("..data")).unwrap();
    };
    version("..1", &[("a.yaml", "a/one"), ("b.yaml", "b/one")]);
    for file in ["a.yaml", "b.yaml"] {
        std::os::unix::fs::symlink(format!("..data/{file}"), folder.path(file)).unwrap();
    }
    let (mut all, mut one) = (shelf(&folder.0), shelf(&folder.path("a.yaml")));
    assert_eq!(
        (look(&mut all).0, look(&mut one).0),
        (vec!["a/one".to_owned(), "b/one".to_owned()], vec!["a/one".to_owned()])
    );
    version("..2", &[("a.yaml", "a/two")]);
    assert_eq!(look(&mut one).0, ["a/two"]);
    assert_eq!(look(&mut all).0, ["a/two", "b/one"], "b leads nowhere for a moment");
    folder.remove("b.yaml");
    assert_eq!(look(&mut all).0, ["a/two"]);
}
