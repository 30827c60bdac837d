/// Grows.
#[inline]
pub fn grow(n: u32) -> u32 {
    n + 1
}

impl<T> Tree<T> {
    pub fn plant(&self) -> u32 {
        1
    }
}
