#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| resemblance_cli::corpus::fuzzing::json_lines(data));
