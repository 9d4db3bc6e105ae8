#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rootlight_fuzz::bitcoin_served::check(data));
