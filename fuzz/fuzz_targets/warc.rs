#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| resemblance_corpus::fuzzing::warc(data));
