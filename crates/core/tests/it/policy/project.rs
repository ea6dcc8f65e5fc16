//! The project that the tables refer to.

use verdone_core::policy::{PolicyContext, Rule, built_in};

pub(crate) fn context() -> PolicyContext {
    PolicyContext {
        root: "/work/project".to_owned(),
        cwd: "/work/project".to_owned(),
        home: Some("/home/dev".to_owned()),
        temp: vec!["/tmp".to_owned()],
        env_files: ["/work/project/.env".to_owned()].into(),
        ..PolicyContext::default()
    }
}

pub(crate) fn rules() -> Vec<Rule> {
    built_in()
}
