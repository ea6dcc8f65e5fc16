use std::path::PathBuf;

/// Compare with `tests/expected/NAME`.
pub(crate) fn same_as_file(name: &str, actual: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/expected").join(name);
    if std::env::var_os("VERDONE_BLESS").is_some() {
        std::fs::write(&path, actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(actual == expected, "{} differs (VERDONE_BLESS=1 rewrites it). Actual:\n{actual}", path.display());
}
