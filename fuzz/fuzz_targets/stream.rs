#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| resemblance::fuzzing::stream(data));
