//! Checksums, and integers out of bytes.

pub(crate) fn checksum(table: &str, key: &[u8], body: &[u8]) -> u32 {
    crc32fast::hash(&[table.as_bytes(), &[0], key, body].concat())
}

pub(crate) fn sealed(table: &str, key: &[u8], mut body: Vec<u8>) -> Vec<u8> {
    let crc = checksum(table, key, &body);
    body.extend(crc.to_le_bytes());
    body
}

pub(crate) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// The body of a value, whose checksum is right.
    pub(crate) fn open(table: &str, key: &[u8], value: &'a [u8]) -> Self {
        let (body, crc) = value.split_at(value.len() - 4);
        assert_eq!(checksum(table, key, body).to_le_bytes(), crc, "{table}");
        Self(body)
    }

    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }

    pub(crate) fn u8(&mut self) -> u8 {
        self.take(1)[0]
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take(2).try_into().unwrap())
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take(4).try_into().unwrap())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take(8).try_into().unwrap())
    }

    /// The number of section 2.12.
    pub(crate) fn varint(&mut self) -> u64 {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.u8();
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                assert!(byte > 0 || shift == 0, "found a number with a shorter form");
                return number;
            }
        }
        panic!("found a number of more than ten bytes")
    }

    /// The option of the metadata encoding.
    pub(crate) fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> Option<T> {
        match self.u8() {
            0 => None,
            1 => Some(read(self)),
            other => panic!("found {other}, expected 0 or 1"),
        }
    }
}
