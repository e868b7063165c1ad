#![no_main]
#![allow(dead_code, reason = "the oracle of the tests has more than this target uses")]

#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "../../tests/format/operations.rs"]
mod operations;

libfuzzer_sys::fuzz_target!(|data: &[u8]| operations::operations(data));
