use std::path::{Path, PathBuf};

/// Compares with `tests/expected/NAME`.
pub(crate) fn same_as_file(name: &str, actual: &str) {
    same_as(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/expected").join(name), actual);
}

/// Compares with a published page, `docs/NAME`.
pub(crate) fn same_as_docs(name: &str, actual: &str) {
    same_as(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name), actual);
}

fn same_as(path: &Path, actual: &str) {
    if std::env::var_os("VERDONE_BLESS").is_some() {
        std::fs::write(path, actual).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    assert!(actual == expected, "{} differs (VERDONE_BLESS=1 rewrites it). Actual:\n{actual}", path.display());
}
