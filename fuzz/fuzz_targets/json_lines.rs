#![no_main]

// The reading of corpora is a part of the tool, which is no library.
#[allow(dead_code, unused_imports)]
#[path = "../../src/corpus/mod.rs"]
mod corpus;

libfuzzer_sys::fuzz_target!(|data: &[u8]| corpus::fuzzing::json_lines(data));
