//! What was read so far of one response: its head, and which resources it named.

/// A response while it streams in.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) nonce: String,
    pub(crate) version: String,
    /// Whether it said its type.
    pub(crate) typed: bool,
    /// Whether it made the client hold something else than before.
    pub(crate) changed: bool,
    /// How many measured changes it brought.
    pub(crate) delivered: u64,
    /// How many resources it named, those that are gone among them.
    pub(crate) count: u32,
    /// One bit for each resource.
    named: Vec<u64>,
}

impl Response {
    pub(crate) fn new(resources: usize) -> Self {
        Self {
            nonce: String::new(),
            version: String::new(),
            typed: false,
            changed: false,
            delivered: 0,
            count: 0,
            named: vec![0; resources.div_ceil(64)],
        }
    }

    /// Makes it the next response, of which nothing was read yet.
    pub(crate) fn clear(&mut self) {
        self.nonce.clear();
        self.version.clear();
        self.typed = false;
        self.changed = false;
        self.delivered = 0;
        self.count = 0;
        self.named.fill(0);
    }

    /// Notes that the response names this resource; false if it did so before.
    pub(crate) fn name(&mut self, index: u32) -> bool {
        let (word, bit) = place(index);
        match self.named.get_mut(word) {
            Some(word) if *word & bit == 0 => {
                *word |= bit;
                self.count += 1;
                true
            }
            Some(_) | None => false,
        }
    }

    pub(crate) fn has_named(&self, index: u32) -> bool {
        let (word, bit) = place(index);
        self.named.get(word).is_some_and(|word| word & bit != 0)
    }
}

fn place(index: u32) -> (usize, u64) {
    (usize::try_from(index / 64).unwrap_or(usize::MAX), 1 << (index % 64))
}
