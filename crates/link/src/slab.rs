//! Places for what is under way, by number: one that is given away is used again.
//!
//! Checked: `a_place_is_used_again`.

/// Values by number.
pub(crate) struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Slab<T> {
    pub fn new() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Gives a value a place; its number.
    pub fn insert(&mut self, value: T) -> usize {
        match self.free.pop() {
            Some(number) => {
                self.places[number] = Some(value);
                number
            }
            None => {
                self.places.push(Some(value));
                self.places.len() - 1
            }
        }
    }

    /// Takes a value out of its place.
    pub fn remove(&mut self, number: usize) -> Option<T> {
        let value = self.places.get_mut(number)?.take();
        self.free.extend(value.is_some().then_some(number));
        value
    }

    pub fn get(&self, number: usize) -> Option<&T> {
        self.places.get(number)?.as_ref()
    }

    pub fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        self.places.get_mut(number)?.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_used_again() {
        let mut slab = Slab::new();
        let (a, b) = (slab.insert('a'), slab.insert('b'));
        assert_eq!((slab.remove(a), slab.remove(a)), (Some('a'), None));
        assert_eq!(slab.insert('c'), a);
        assert_eq!((slab.get(a), slab.get(b)), (Some(&'c'), Some(&'b')));
        *slab.get_mut(b).unwrap() = 'd';
        assert_eq!(slab.remove(b), Some('d'));
        assert_eq!(slab.get(99), None);
    }
}
