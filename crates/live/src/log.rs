//! Rows of a recording.

/// Rows in the order in which they were pushed. It grows without copying those that are there, which would stop all
/// packets for milliseconds.
#[derive(Debug)]
pub(crate) struct Log<T> {
    /// All but the last are full.
    chunks: Vec<Vec<T>>,
}

impl<T> Log<T> {
    /// Rows per chunk.
    const CHUNK: usize = 1 << 14;

    pub(crate) fn new() -> Log<T> {
        Log { chunks: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        let last = self.chunks.last().map_or(0, Vec::len);
        self.chunks.len().saturating_sub(1) * Self::CHUNK + last
    }

    pub(crate) fn push(&mut self, row: T) {
        match self.chunks.last_mut() {
            Some(last) if last.len() < Self::CHUNK => last.push(row),
            _ => {
                let mut chunk = Vec::with_capacity(Self::CHUNK);
                chunk.push(row);
                self.chunks.push(chunk);
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stay_in_order_and_in_place() {
        let mut log = Log::new();
        let most = 3 * Log::<usize>::CHUNK + 1;
        log.push(0);
        let first = std::ptr::from_ref(log.iter().next().expect("a row"));
        for row in 1..most {
            assert_eq!(log.len(), row);
            log.push(row);
        }
        assert!(log.iter().copied().eq(0..most));
        assert_eq!(log.iter().next().map(std::ptr::from_ref), Some(first));
    }
}
