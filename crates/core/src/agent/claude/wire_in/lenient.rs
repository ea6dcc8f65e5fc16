//! Deserializes a value as the expected type, or as nothing: a field whose type changed must not invalidate the whole line.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

pub(super) fn text<'a, 'de: 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cow<'a, str>>, D::Error> {
    Ok(match Scalar::deserialize(deserializer)? {
        Scalar::Text(text) => Some(text),
        Scalar::Whole(_) | Scalar::Float(_) | Scalar::Flag(_) | Scalar::Other => None,
    })
}

pub(super) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(match Scalar::deserialize(deserializer)? {
        Scalar::Whole(number) => Some(number),
        // A count such as `12.0` is still a count.
        Scalar::Float(number) if (0.0..9e15).contains(&number) => Some(counted(number)),
        Scalar::Float(_) | Scalar::Text(_) | Scalar::Flag(_) | Scalar::Other => None,
    })
}

#[expect(clippy::cast_sign_loss, reason = "the caller has looked at its range")]
fn counted(number: f64) -> u64 {
    number as u64
}

pub(super) fn float<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    Ok(match Scalar::deserialize(deserializer)? {
        Scalar::Whole(number) => Some(number as f64),
        Scalar::Float(number) => Some(number),
        Scalar::Text(_) | Scalar::Flag(_) | Scalar::Other => None,
    })
}

pub(super) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(match Scalar::deserialize(deserializer)? {
        Scalar::Flag(flag) => flag,
        Scalar::Text(_) | Scalar::Whole(_) | Scalar::Float(_) | Scalar::Other => false,
    })
}

/// An object, or its default.
pub(super) fn object<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_any(Objects(PhantomData))
}

/// A list of objects; other items are skipped.
pub(super) fn objects<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let found: Vec<Option<Tolerant<T>>> = deserializer.deserialize_any(Lists(PhantomData))?;
    Ok(found.into_iter().flatten().map(|Tolerant(value)| value).collect())
}

/// A list of texts; other items are skipped.
pub(super) fn texts<'a, 'de: 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Cow<'a, str>>, D::Error> {
    let found: Vec<Option<Scalar<'de>>> = deserializer.deserialize_any(Lists(PhantomData))?;
    let text = |value: Scalar<'de>| match value {
        Scalar::Text(text) => Some(text),
        Scalar::Whole(_) | Scalar::Float(_) | Scalar::Flag(_) | Scalar::Other => None,
    };
    Ok(found.into_iter().flatten().filter_map(text).collect())
}

/// An object whose keys are names.
pub(super) fn named<'a, 'de: 'a, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<Vec<(Cow<'a, str>, T)>, D::Error> {
    deserializer.deserialize_any(Named(PhantomData))
}

/// The possible values of a field.
enum Scalar<'a> {
    Text(Cow<'a, str>),
    Whole(u64),
    Float(f64),
    Flag(bool),
    Other,
}

impl<'de> Deserialize<'de> for Scalar<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Scalars)
    }
}

/// The handling of other types, shared by all visitors: skip the value.
macro_rules! otherwise {
    ($other:expr; $($kind:ident)*) => {
        $(otherwise!(@ $kind $other);)*
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok($other)
        }
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("anything")
        }
    };
    (@ scalars $other:expr) => {
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok($other)
        }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok($other)
        }
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok($other)
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok($other)
        }
        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok($other)
        }
    };
    (@ map $other:expr) => {
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok($other)
        }
    };
    (@ seq $other:expr) => {
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            Ok($other)
        }
    };
}

struct Scalars;

impl<'de> Visitor<'de> for Scalars {
    type Value = Scalar<'de>;

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Scalar::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Scalar::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Scalar::Whole(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(u64::try_from(number).map_or(Scalar::Float(number as f64), Scalar::Whole))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Scalar::Float(number))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Self::Value, E> {
        Ok(Scalar::Flag(flag))
    }

    otherwise!(Scalar::Other; map seq);
}

struct Objects<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for Objects<T> {
    type Value = T;

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }

    otherwise!(T::default(); scalars seq);
}

/// An object in a list.
struct Tolerant<T>(T);

struct Items<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
    type Value = Option<T>;

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Option<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Some)
    }

    otherwise!(None; scalars seq);
}

/// An item of a list; `None` if it has an unexpected type.
trait Item<'de>: Sized {
    fn item<D: Deserializer<'de>>(deserializer: D) -> Result<Option<Self>, D::Error>;
}

impl<'de, T: Deserialize<'de>> Item<'de> for Tolerant<T> {
    fn item<D: Deserializer<'de>>(deserializer: D) -> Result<Option<Self>, D::Error> {
        Ok(deserializer.deserialize_any(Items(PhantomData))?.map(Tolerant))
    }
}

impl<'de> Item<'de> for Scalar<'de> {
    fn item<D: Deserializer<'de>>(deserializer: D) -> Result<Option<Self>, D::Error> {
        Self::deserialize(deserializer).map(Some)
    }
}

struct Seed<T>(PhantomData<T>);

impl<'de, T: Item<'de>> serde::de::DeserializeSeed<'de> for Seed<T> {
    type Value = Option<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<T>, D::Error> {
        T::item(deserializer)
    }
}

struct Lists<T>(PhantomData<T>);

impl<'de, T: Item<'de>> Visitor<'de> for Lists<T> {
    type Value = Vec<Option<T>>;

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some(item) = seq.next_element_seed(Seed(PhantomData))? {
            found.push(item);
        }
        Ok(found)
    }

    otherwise!(Vec::new(); scalars map);
}

struct Named<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for Named<T> {
    type Value = Vec<(Cow<'de, str>, T)>;

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            let value = map.next_value_seed(Seed::<Tolerant<T>>(PhantomData))?;
            found.push((name, value.map_or_else(T::default, |Tolerant(value)| value)));
        }
        Ok(found)
    }

    otherwise!(Vec::new(); scalars seq);
}
