//! The keys of `package.json`. Unknown keys are protected: most of them configure some tool.

use super::split::{Part, is_listed};

const WORK: &str = "\
$schema name displayName version description keywords homepage bugs license licenses author contributors maintainers \
publisher funding repository private publishConfig files main module browser types typings typesVersions exports \
bin man directories type sideEffects unpkg jsdelivr style source engines os cpu libc packageManager peerDependenciesMeta \
dependenciesMeta bundleDependencies bundledDependencies icon categories contributes activationEvents";

pub(super) fn part(path: &[&str]) -> Part {
    match path {
        [key] if is_listed(WORK, key) => Part::Work,
        ["dependencies" | "devDependencies" | "peerDependencies" | "optionalDependencies"] => Part::Dependencies,
        ["overrides" | "resolutions"] | ["pnpm", "overrides"] => Part::Overrides,
        ["workspaces"] => Part::Members,
        ["pnpm"] => Part::Split,
        _ => Part::Protected,
    }
}

/// Whether npm runs a script automatically when the package is installed or published.
pub(in super::super) fn runs_on_install(script: &str) -> bool {
    is_listed(RUN_ON_INSTALL, script)
}

const RUN_ON_INSTALL: &str = "\
preinstall install postinstall prepublish preprepare prepare postprepare prepack postpack prepublishOnly publish \
postpublish dependencies";
