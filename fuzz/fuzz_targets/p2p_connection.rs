#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rootlight_fuzz::p2p_connection::check(data));
