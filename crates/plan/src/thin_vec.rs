//! A list that is usually empty and then takes only the size of a pointer: a plan has many stories, most with few details.

use std::ops::{Deref, DerefMut};

use serde::{Serialize, Serializer};

#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::box_collection, reason = "a list by itself takes three words, however empty it is")]
pub struct ThinVec<T>(Option<Box<Vec<T>>>);

impl<T> ThinVec<T> {
    pub const EMPTY: Self = Self(None);
}

impl<T> From<Vec<T>> for ThinVec<T> {
    fn from(mut items: Vec<T>) -> Self {
        if items.is_empty() {
            return Self::EMPTY;
        }
        items.shrink_to_fit();
        Self(Some(Box::new(items)))
    }
}

impl<T> Deref for ThinVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }
}

impl<T> DerefMut for ThinVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.0.as_deref_mut().map_or(&mut [], Vec::as_mut_slice)
    }
}

impl<T> Default for ThinVec<T> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<'a, T> IntoIterator for &'a ThinVec<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: PartialEq<U>, U> PartialEq<Vec<U>> for ThinVec<T> {
    fn eq(&self, other: &Vec<U>) -> bool {
        **self == other[..]
    }
}

impl<T: PartialEq<U>, U, const N: usize> PartialEq<[U; N]> for ThinVec<T> {
    fn eq(&self, other: &[U; N]) -> bool {
        **self == other[..]
    }
}

impl<T: Serialize> Serialize for ThinVec<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.deref().serialize(serializer)
    }
}
