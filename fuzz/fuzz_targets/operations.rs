#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "../../tests/format/operations.rs"]
mod operations;

libfuzzer_sys::fuzz_target!(|data: &[u8]| operations::operations(data));
