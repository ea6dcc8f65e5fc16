//! Links the release binary at a fixed address.
//!
//! Every tool call starts a hook. With a position-independent binary, the loader would relocate about 17,000 pointers in 80 pages each
//! time, which costs more than the hook's own work. Stack, heap and libraries still get random addresses.

fn main() {
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    println!("cargo::rerun-if-changed=Cargo.toml");
    // A static binary gets its fixed address from the compiler's relocation model.
    let is_static = std::env::var("CARGO_CFG_TARGET_FEATURE").is_ok_and(|found| found.split(',').any(|one| one == "crt-static"));
    if !is_static && is("PROFILE", "release") && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
