//! Property tests in the suite use a fixed seed; `scripts/test explore` uses a new one.

use proptest::test_runner::{Config, RngSeed};

#[test]
fn property_tests_start_from_a_fixed_seed() {
    assert!(matches!(Config::default().rng_seed, RngSeed::Fixed(_)), "start tests with cargo: the seed is in .cargo/config.toml");
}
