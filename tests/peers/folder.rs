// SPDX-License-Identifier: Apache-2.0
//! A directory for one test, which is removed at its end.

use std::path::PathBuf;

pub struct Folder(PathBuf);

impl Folder {
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it is made on the disk")]
    pub fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("distributary-{:016x}", rand::random::<u64>()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Moves a new file into the place of another one.
    pub fn replace(&self, name: &str, text: &str) {
        let new = self.put(&format!("{name}.new"), text);
        std::fs::rename(new, self.path(name)).unwrap();
    }

    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}
