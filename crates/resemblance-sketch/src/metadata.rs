//! The only place that encodes structures as bytes, with serde.
//!
//! The encoding is fixed, and `format-spec.md` documents it. Numbers are little-endian and have
//! their natural width; an `Option` begins with one byte; an enum begins with its variant as a
//! `u32`; a sequence or a string is a `u64` count and its elements; a structure or an array is its
//! parts in order. Nothing else can be encoded.

use serde::de::{DeserializeOwned, VariantAccess, Visitor};
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, SeqAccess};
use serde::ser::{Impossible, Serialize, Serializer};

use crate::error::{Result, SketchError};

/// Encodes a value; `place` names it in errors.
pub fn encode(place: &str, value: &impl Serialize) -> Result<Vec<u8>> {
    let mut encoder = Encoder(Vec::new());
    let encoded = value.serialize(&mut encoder);
    encoded.map_err(|fault| SketchError::corrupt(place, format!("cannot be encoded: {fault}")))?;
    Ok(encoder.0)
}

/// Decodes all of `bytes`; left-over bytes count as damage. `place` names the bytes in errors.
pub fn decode<T: DeserializeOwned>(place: &str, bytes: &[u8]) -> Result<T> {
    let mut decoder = Decoder(bytes);
    let value = T::deserialize(&mut decoder)
        .map_err(|fault| SketchError::corrupt(place, format!("cannot be decoded: {fault}")))?;
    match decoder.0.len() {
        0 => Ok(value),
        left => {
            let (found, used) = (bytes.len(), bytes.len() - left);
            let detail = format!("found {found} bytes, expected {used}");
            Err(SketchError::corrupt(place, detail))
        }
    }
}

/// The reason why a value has no bytes, or bytes have no value.
#[derive(Debug)]
struct CodingFault(String);

type Coded<T = ()> = std::result::Result<T, CodingFault>;

impl std::fmt::Display for CodingFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CodingFault {}

impl serde::ser::Error for CodingFault {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl serde::de::Error for CodingFault {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

fn unknown_type() -> CodingFault {
    CodingFault("the format has no values of this type".into())
}

/// The bytes of what has been encoded.
struct Encoder(Vec<u8>);

impl Encoder {
    fn put(&mut self, bytes: &[u8]) -> Coded {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

macro_rules! encode_numbers {
    ($($method:ident($number:ty))*) => {$(
        fn $method(self, number: $number) -> Coded {
            self.put(&number.to_le_bytes())
        }
    )*};
}

/// Defines the methods that begin a value of several parts, before which nothing is written.
macro_rules! encode_parts {
    ($($method:ident($($argument:ty),*) -> $kind:ident;)*) => {$(
        fn $method(self, $(_: $argument,)* _parts: usize) -> Coded<Self::$kind> {
            Ok(self)
        }
    )*};
}

impl Serializer for &mut Encoder {
    type Ok = ();
    type Error = CodingFault;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Impossible<(), CodingFault>;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    encode_numbers! {
        serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64)
        serialize_f32(f32) serialize_f64(f64)
    }

    encode_parts! {
        serialize_tuple() -> SerializeTuple;
        serialize_tuple_struct(&'static str) -> SerializeTupleStruct;
        serialize_struct(&'static str) -> SerializeStruct;
    }

    fn serialize_bool(self, value: bool) -> Coded {
        self.put(&[value.into()])
    }

    fn serialize_char(self, _: char) -> Coded {
        Err(unknown_type())
    }

    fn serialize_str(self, text: &str) -> Coded {
        self.serialize_bytes(text.as_bytes())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Coded {
        self.put(&(bytes.len() as u64).to_le_bytes())?;
        self.put(bytes)
    }

    fn serialize_none(self) -> Coded {
        self.put(&[0])
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Coded {
        self.put(&[1])?;
        value.serialize(self)
    }

    fn serialize_unit(self) -> Coded {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Coded {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, index: u32, _: &'static str) -> Coded {
        self.serialize_u32(index)
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(self, _: &'static str, value: &T) -> Coded {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        value: &T,
    ) -> Coded {
        self.put(&index.to_le_bytes())?;
        value.serialize(self)
    }

    fn serialize_seq(self, count: Option<usize>) -> Coded<Self> {
        let count = count.ok_or_else(unknown_type)?;
        self.put(&(count as u64).to_le_bytes())?;
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        _parts: usize,
    ) -> Coded<Self> {
        self.put(&index.to_le_bytes())?;
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Coded<Self::SerializeMap> {
        Err(unknown_type())
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        _parts: usize,
    ) -> Coded<Self> {
        self.put(&index.to_le_bytes())?;
        Ok(self)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

macro_rules! encode_each {
    ($($part:ident::$method:ident($($name:ty)?))*) => {$(
        impl serde::ser::$part for &mut Encoder {
            type Ok = ();
            type Error = CodingFault;

            fn $method<T: ?Sized + Serialize>(&mut self, $(_: $name,)? value: &T) -> Coded {
                value.serialize(&mut **self)
            }

            fn end(self) -> Coded {
                Ok(())
            }
        }
    )*};
}

encode_each! {
    SerializeSeq::serialize_element()
    SerializeTuple::serialize_element()
    SerializeTupleStruct::serialize_field()
    SerializeTupleVariant::serialize_field()
    SerializeStruct::serialize_field(&'static str)
    SerializeStructVariant::serialize_field(&'static str)
}

/// The bytes that are left to decode.
struct Decoder<'d>(&'d [u8]);

impl<'d> Decoder<'d> {
    fn take(&mut self, count: usize) -> Coded<&'d [u8]> {
        let end = || CodingFault("the bytes end too early".into());
        let (taken, left) = self.0.split_at_checked(count).ok_or_else(end)?;
        self.0 = left;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Coded<[u8; N]> {
        let taken = self.take(N)?;
        taken.try_into().map_err(serde::de::Error::custom)
    }

    /// Returns a number of bytes or elements. Each element has at least one byte.
    fn count(&mut self) -> Coded<usize> {
        let count = u64::from_le_bytes(self.array()?);
        let fits = usize::try_from(count).ok().filter(|it| *it <= self.0.len());
        fits.ok_or_else(|| CodingFault(format!("{count} elements do not fit into the bytes")))
    }

    fn flag(&mut self) -> Coded<bool> {
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => Err(CodingFault(format!("found {other}, expected 0 or 1"))),
        }
    }
}

macro_rules! decode_numbers {
    ($($method:ident $visit:ident($number:ty))*) => {$(
        fn $method<V: Visitor<'d>>(self, visitor: V) -> Coded<V::Value> {
            visitor.$visit(<$number>::from_le_bytes(self.array()?))
        }
    )*};
}

macro_rules! decode_nothing {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'d>>(self, _: V) -> Coded<V::Value> {
            Err(unknown_type())
        }
    )*};
}

impl<'d> Deserializer<'d> for &mut Decoder<'d> {
    type Error = CodingFault;

    decode_numbers! {
        deserialize_i8 visit_i8(i8) deserialize_i16 visit_i16(i16)
        deserialize_i32 visit_i32(i32) deserialize_i64 visit_i64(i64)
        deserialize_u8 visit_u8(u8) deserialize_u16 visit_u16(u16)
        deserialize_u32 visit_u32(u32) deserialize_u64 visit_u64(u64)
        deserialize_f32 visit_f32(f32) deserialize_f64 visit_f64(f64)
    }

    decode_nothing! {
        deserialize_any deserialize_char deserialize_identifier deserialize_ignored_any
        deserialize_map
    }

    fn deserialize_bool<V: Visitor<'d>>(self, visitor: V) -> Coded<V::Value> {
        visitor.visit_bool(self.flag()?)
    }

    fn deserialize_str<V: Visitor<'d>>(self, visitor: V) -> Coded<V::Value> {
        let count = self.count()?;
        let text = std::str::from_utf8(self.take(count)?);
        visitor.visit_borrowed_str(text.map_err(serde::de::Error::custom)?)
    }

    fn deserialize_string<V: Visitor<'d>>(self, visitor: V) -> Coded<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'d>>(self, visitor: V) -> Coded<V::Value> {
        let count = self.count()?;
        visitor.visit_borrowed_bytes(self.take(count)?)
    }

    fn deserialize_byte_buf<V: Visitor<'d>>(self, visitor: V) -> Coded<V::Value> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'d>>(self, visitor: V) -> Coded<V::Value> {
        match self.flag()? {
            true => visitor.visit_some(self),
            false => visitor.visit_none(),
        }
    }

    fn deserialize_unit<V: Visitor<'d>>(self, visitor: V) -> Coded<V::Value> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'d>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Coded<V::Value> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'d>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Coded<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'d>>(self, visitor: V) -> Coded<V::Value> {
        let left = self.count()?;
        visitor.visit_seq(Elements {
            decoder: self,
            left,
        })
    }

    fn deserialize_tuple<V: Visitor<'d>>(self, parts: usize, visitor: V) -> Coded<V::Value> {
        visitor.visit_seq(Elements {
            decoder: self,
            left: parts,
        })
    }

    fn deserialize_tuple_struct<V: Visitor<'d>>(
        self,
        _: &'static str,
        parts: usize,
        visitor: V,
    ) -> Coded<V::Value> {
        self.deserialize_tuple(parts, visitor)
    }

    fn deserialize_struct<V: Visitor<'d>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Coded<V::Value> {
        self.deserialize_tuple(fields.len(), visitor)
    }

    fn deserialize_enum<V: Visitor<'d>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Coded<V::Value> {
        visitor.visit_enum(self)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// The elements of a sequence, or the parts of a value.
struct Elements<'e, 'd> {
    decoder: &'e mut Decoder<'d>,
    left: usize,
}

impl<'d> SeqAccess<'d> for Elements<'_, 'd> {
    type Error = CodingFault;

    fn next_element_seed<T: DeserializeSeed<'d>>(&mut self, seed: T) -> Coded<Option<T::Value>> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        self.left = left;
        seed.deserialize(&mut *self.decoder).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'d> EnumAccess<'d> for &mut Decoder<'d> {
    type Error = CodingFault;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'d>>(self, seed: T) -> Coded<(T::Value, Self)> {
        let index = u32::from_le_bytes(self.array()?);
        let variant =
            seed.deserialize(IntoDeserializer::<CodingFault>::into_deserializer(index))?;
        Ok((variant, self))
    }
}

impl<'d> VariantAccess<'d> for &mut Decoder<'d> {
    type Error = CodingFault;

    fn unit_variant(self) -> Coded {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'d>>(self, seed: T) -> Coded<T::Value> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'d>>(self, parts: usize, visitor: V) -> Coded<V::Value> {
        self.deserialize_tuple(parts, visitor)
    }

    fn struct_variant<V: Visitor<'d>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Coded<V::Value> {
        self.deserialize_tuple(fields.len(), visitor)
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    enum Shape {
        Empty,
        Wide(u16),
        Pair(u8, i32),
        Named { a: bool, b: Option<f64> },
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Sample {
        text: String,
        shapes: Vec<Shape>,
        places: [u64; 2],
        bytes: Option<Vec<u8>>,
    }

    fn sample() -> Sample {
        Sample {
            text: "é".into(),
            shapes: vec![
                Shape::Empty,
                Shape::Wide(258),
                Shape::Pair(3, -2),
                Shape::Named {
                    a: true,
                    b: Some(0.5),
                },
                Shape::Named { a: false, b: None },
            ],
            places: [1, 1 << 63],
            bytes: Some(vec![7, 8]),
        }
    }

    /// The bytes of [`sample`], as bincode 2.0.1 wrote them in its legacy configuration.
    const BYTES: &[u8] = b"\x02\0\0\0\0\0\0\0\xc3\xa9\
        \x05\0\0\0\0\0\0\0\
        \0\0\0\0\
        \x01\0\0\0\x02\x01\
        \x02\0\0\0\x03\xfe\xff\xff\xff\
        \x03\0\0\0\x01\x01\0\0\0\0\0\0\xe0\x3f\
        \x03\0\0\0\0\0\
        \x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x80\
        \x01\x02\0\0\0\0\0\0\0\x07\x08";

    #[test]
    fn values_have_the_bytes_of_the_specification() {
        assert_eq!(encode("a sample", &sample()).unwrap(), BYTES);
        assert_eq!(decode::<Sample>("a sample", BYTES).unwrap(), sample());
    }

    #[test]
    fn other_bytes_are_refused_or_are_another_value() {
        for length in 0..BYTES.len() {
            let cut = BYTES.get(..length).unwrap();
            decode::<Sample>("a sample", cut).unwrap_err();
        }
        let longer = [BYTES, b"\0"].concat();
        let refused = decode::<Sample>("a sample", &longer).unwrap_err();
        assert!(refused.to_string().contains("expected"), "{refused}");
        for place in 0..BYTES.len() {
            for bit in 0..8 {
                let mut changed = BYTES.to_vec();
                *changed.get_mut(place).unwrap() ^= 1 << bit;
                if let Ok(other) = decode::<Sample>("a sample", &changed) {
                    assert_eq!(encode("a sample", &other).unwrap(), changed);
                }
            }
        }
    }

    #[test]
    fn values_that_the_format_lacks_are_errors() {
        encode("a letter", &'a').unwrap_err();
        let map = std::collections::BTreeMap::from([(1, 2)]);
        encode("a map", &map).unwrap_err();
    }
}
