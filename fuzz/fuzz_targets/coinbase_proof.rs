#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rootlight_fuzz::coinbase_proof::check(data));
