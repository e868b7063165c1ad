#![no_main]

#[path = "../operations/mod.rs"]
mod operations;

libfuzzer_sys::fuzz_target!(|data: &[u8]| operations::operations(data));
