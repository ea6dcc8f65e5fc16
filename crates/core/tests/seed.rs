//! Property tests in the suite start from a fixed seed: a fresh one belongs to `scripts/test explore`.

use proptest::test_runner::{Config, RngSeed};

#[test]
fn property_tests_start_from_a_fixed_seed() {
    assert!(matches!(Config::default().rng_seed, RngSeed::Fixed(_)), "start tests with cargo: the seed is in .cargo/config.toml");
}
