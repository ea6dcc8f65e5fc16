//! The default patterns as data. For each ecosystem: how to recognise it, which files judge the work, and which are work.
//!
//! A pattern matches in every folder, unless it starts with `/`: then it is relative to the project. A pattern that ends with `/**`
//! covers the whole content of a folder.

/// A language or a tool, with its conventions for tests and configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ecosystem {
    /// Conventions that apply everywhere; always present.
    Any,
    Python,
    JavaScript,
    Rust,
    Go,
    Make,
    C,
    Java,
    Ruby,
    Php,
    DotNet,
    Elixir,
    Perl,
}

/// The conventions of one ecosystem.
#[derive(Debug, Clone, Copy)]
pub struct Defaults {
    /// Files that show that a project uses it.
    pub markers: &'static [&'static str],
    /// Tests and test data.
    pub tests: &'static [&'static str],
    /// Configuration of tests, linters, compilers and builds.
    pub configuration: &'static [&'static str],
    /// Files that are work even if a new file of unknown purpose would count as protected.
    pub work: &'static [&'static str],
}

impl Ecosystem {
    pub const ALL: [Self; 13] = [
        Self::Any,
        Self::Python,
        Self::JavaScript,
        Self::Rust,
        Self::Go,
        Self::Make,
        Self::C,
        Self::Java,
        Self::Ruby,
        Self::Php,
        Self::DotNet,
        Self::Elixir,
        Self::Perl,
    ];

    /// The ecosystems of these files. Pass the files of both the base and the attempt.
    pub fn present<'a>(paths: impl IntoIterator<Item = &'a str>) -> Vec<Self> {
        let mut missing: Vec<Self> = Self::ALL.into_iter().filter(|one| *one != Self::Any).collect();
        let mut found = vec![Self::Any];
        for path in paths {
            let name = path.rsplit('/').next().unwrap_or(path);
            missing.retain(|one| {
                let shown = one.defaults().markers.iter().any(|marker| match marker.strip_prefix('*') {
                    Some(end) => name.ends_with(end),
                    None => name == *marker,
                });
                if shown {
                    found.push(*one);
                }
                !shown
            });
            if missing.is_empty() {
                break;
            }
        }
        found.sort_unstable();
        found
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "any project",
            Self::Python => "Python",
            Self::JavaScript => "JavaScript",
            Self::Rust => "Rust",
            Self::Go => "Go",
            Self::Make => "make",
            Self::C => "C and C++",
            Self::Java => "Java and Kotlin",
            Self::Ruby => "Ruby",
            Self::Php => "PHP",
            Self::DotNet => ".NET",
            Self::Elixir => "Elixir",
            Self::Perl => "Perl",
        }
    }

    pub fn defaults(self) -> &'static Defaults {
        match self {
            Self::Any => &ANY,
            Self::Python => &PYTHON,
            Self::JavaScript => &JAVASCRIPT,
            Self::Rust => &RUST,
            Self::Go => &GO,
            Self::Make => &MAKE,
            Self::C => &C,
            Self::Java => &JAVA,
            Self::Ruby => &RUBY,
            Self::Php => &PHP,
            Self::DotNet => &DOTNET,
            Self::Elixir => &ELIXIR,
            Self::Perl => &PERL,
        }
    }
}

/// CI configuration: runs on a server after a push.
pub(super) const CI: &[&str] = &[
    "/.github/**",
    "/.gitlab/**",
    "/.circleci/**",
    "/.buildkite/**",
    "/.woodpecker/**",
    "/.forgejo/**",
    "/.gitea/**",
    "/.teamcity/**",
    "/.azure-pipelines/**",
    "/.ci/**",
    "/ci/**",
    ".gitlab-ci*.{yml,yaml}",
    "{.travis,.drone,.appveyor,appveyor,.cirrus,.woodpecker,.semaphore,bitbucket-pipelines,cloudbuild,buildspec}.{yml,yaml}",
    "azure-pipelines*.{yml,yaml}",
    "Jenkinsfile*",
    "/{codecov,.codecov,sonar-project,.coveralls}.{yml,yaml,properties}",
];

/// Files that later run outside the workspace without being started explicitly: when a folder is opened or entered, when an agent
/// starts, on a commit, on a push.
///
/// Not listed: `.gitattributes` and `.gitmodules`. They can name a filter, a merge driver or an update command, but git takes the
/// program itself from the user's own configuration, and refuses commands in `.gitmodules`. They are protected, like all files
/// that change what git and other tools see.
pub const AUTORUN: &[&str] = &[
    "/.verdone/**",
    "/.fresher/hooks/**",
    "/.fresher/config.toml",
    ".claude/**",
    ".mcp.json",
    ".cursor/**",
    ".codex/**",
    ".gemini/**",
    ".opencode/**",
    ".continue/**",
    ".vscode/**",
    "*.code-workspace",
    ".idea/**",
    ".fleet/**",
    ".zed/**",
    ".nvim.lua",
    ".nvimrc",
    ".exrc",
    ".vimrc",
    ".dir-locals.el",
    ".envrc",
    "{mise,.mise,mise.local}.toml",
    ".mise/**",
    "/.config/mise*",
    ".autoenv",
    ".husky/**",
    ".githooks/**",
    ".git-hooks/**",
    "/.git_hooks/**",
    ".lefthook/**",
    "{,.}lefthook*.{yml,yaml,toml,json}",
    ".overcommit.yml",
    ".pre-commit-config.yaml",
    ".pre-commit-hooks.yaml",
    ".gitconfig",
    ".devcontainer/**",
    ".devcontainer.json",
    "/.gitpod.*",
];

const ANY: Defaults = Defaults {
    markers: &[],
    tests: &[
        "{test,tests,__tests__,testdata,test_data,test-data,testutils}/**",
        "{acceptance,accept,e2e,e2e_tests,qa,smoke,integration}/**",
        "{test,tests}[-_]*/**",
        "*[-_]{test,tests}/**",
        "{fixtures,__fixtures__,golden,goldens,snapshots,__snapshots__,cassettes}/**",
        "*.{snap,golden,approved.txt}",
        "{bench,benches,benchmarks}/**",
        "*.{bats,feature}",
    ],
    configuration: &[
        "/.verdone/**",
        // Typical names of check scripts.
        "/{,scripts/,script/,bin/,tools/,hack/}{test,tests,check,checks,lint,verify,ci,run-tests,run_tests,runtests}{,.*}",
        "{test,tests,check,lint,verify,run-tests,run_tests}.{sh,bash}",
        // Files that many tools obey: which files they see, how files are formatted.
        ".{gitignore,ignore,rgignore,gitattributes,gitmodules,lfsconfig,editorconfig,dockerignore}",
        "{justfile,Justfile,.justfile,Taskfile,Earthfile,Tiltfile}",
        "*.just",
        "Taskfile*.{yml,yaml}",
        "{.tool-versions,.envrc,.env.test,.env.ci,.env.testing}",
        "{.yamllint,.markdownlint,.hadolint,.shellcheckrc,.typos,_typos,typos,.codespellrc,.trivyignore,.gitleaks,.semgrepignore}*",
        "{deny,.megalinter,.mega-linter,trunk}.{toml,yml,yaml}",
        "{.semgrep,.trunk,.reviewdog}/**",
        "{WORKSPACE,MODULE.bazel,.bazelrc,.bazelversion,.buckconfig,BUCK}",
        "{flake.nix,shell.nix,default.nix,devbox.json}",
    ],
    work: &[
        "*.{md,mdx,rst,adoc,org}",
        "{LICENSE,LICENCE,COPYING,NOTICE,AUTHORS,CODEOWNERS,CHANGELOG,CHANGES,README,VERSION}{,.*}",
        "*.{png,jpg,jpeg,gif,svg,ico,webp,pdf,css,scss,html,sql,proto,graphql}",
        "{Dockerfile,Containerfile}{,.*}",
        "{docker-compose,compose}*.{yml,yaml}",
        "{flake,devbox,deno,bun}.lock{,b}",
        ".{mailmap,npmignore,nvmrc,node-version,python-version,ruby-version}",
        ".env.example",
    ],
};

const PYTHON: Defaults = Defaults {
    markers: &["*.py", "pyproject.toml", "setup.cfg", "requirements.txt", "Pipfile"],
    tests: &["test_*.py", "*_test.py", "{test,tests}.py", "{conftest,*_tests,testing_*}.py", "*.doctest"],
    configuration: &[
        "{pytest,.pytest,tox,pylintrc}.{ini,toml}",
        "{pytest.toml,.pytest.toml,setup.cfg,noxfile.py,toxfile.py}",
        "/{tasks,dodo,fabfile}.py",
        ".coveragerc*",
        ".ruff*.toml",
        "ruff*.toml",
        "{mypy,.mypy}.ini",
        "{.flake8,.pylintrc,pylintrc,.bandit,bandit.yaml,.isort.cfg,.style.yapf,.pycodestyle,.pydocstyle,.pydocstyle.ini}",
        "pyright*.json",
        "pyrefly.toml",
        "ty.toml",
        ".{pyre_configuration,pytype.cfg,importlinter}",
        "{sitecustomize,usercustomize}.py",
        "*.{pth,egg-link}",
        // Compiled code is loaded without looking at its source.
        "__pycache__/**",
        "*.{pyc,pyo}",
        "hatch.toml",
    ],
    work: &[
        "{poetry,uv,pdm,pixi}.lock",
        "{Pipfile,Pipfile.lock,pylock.toml,setup.py,MANIFEST.in}",
        "{requirements,constraints}*.{txt,in}",
        "requirements/*.{txt,in}",
        "environment*.{yml,yaml}",
        "/*.py",
    ],
};

const JAVASCRIPT: Defaults = Defaults {
    markers: &["package.json", "deno.json", "deno.jsonc", "tsconfig.json", "*.js", "*.ts", "*.mjs", "*.cjs", "*.jsx", "*.tsx"],
    tests: &[
        "*.{test,spec,tests,specs,e2e,cy,bench,test-d,typetest}.*",
        "*[-_]{test,spec}.{js,ts,mjs,cjs,jsx,tsx,mts,cts}",
        "test-*.{js,ts,mjs,cjs,mts,cts}",
        "{test,tests,spec}.{js,ts,mjs,cjs,jsx,tsx,mts,cts}",
        "{__mocks__,__tests__,spec,specs,cypress,playwright,jasmine}/**",
        "{setupTests,setup-tests,testSetup,test-setup,test-utils,testUtils}.*",
    ],
    configuration: &[
        "*.{workspace,setup}.{js,ts,mjs,cjs,mts,cts,json}",
        ".*rc",
        ".*rc.{js,ts,mjs,cjs,mts,cts,json,json5,yml,yaml,toml}",
        "/*.config.{js,ts,mjs,cjs,mts,cts,json}",
        "{babel,webpack,rollup,vite,rspack,rsbuild,esbuild,tsup,tsdown,swc,metro,craco,eslint,prettier,stylelint,postcss,tailwind}.config.*",
        "{next,nuxt,svelte,astro,remix,vue,commitlint,lint-staged,wdio,nightwatch,stryker,ava,c8,nyc,knip,release,codegen}.config.*",
        "{jest,vitest,mocha,karma,cypress,playwright}[-.]*",
        "/{jest,vitest,mocha,ava,karma,cypress,playwright,babel,eslint}*",
        "{karma,protractor,wdio,nightwatch}.conf.*",
        ".{eslintignore,prettierignore,stylelintignore,npmrc,yarnrc,yarnrc.yml,pnpmfile.cjs,bunfig.toml,swcrc,taprc,mocharc}",
        "{bunfig.toml,.pnpmfile.cjs}",
        "{tsconfig,jsconfig}*.json",
        "{tslint,biome,dprint,oxlintrc,.oxlintrc,turbo,nx,project,lerna,rush,deno,angular,cypress,wireit,moon}.{json,jsonc,yml}",
        "{gulpfile,Gruntfile,Gulpfile,Jakefile,wallaby}*",
        ".yarn/{plugins,releases}/**",
        ".storybook/**",
        "/patches/**",
    ],
    work: &[
        "{package-lock,npm-shrinkwrap}.json",
        "{yarn,bun}.lock",
        "bun.lockb",
        "pnpm-lock.yaml",
        "pnpm-workspace.yaml",
        "*.{js,ts,mjs,cjs,jsx,tsx,mts,cts,vue,svelte,astro}",
    ],
};

const RUST: Defaults = Defaults {
    markers: &["Cargo.toml", "*.rs"],
    tests: &["{test,tests}.rs", "*_{test,tests}.rs", "{test,tests}_*.rs", "*.{stderr,stdout}"],
    configuration: &[
        ".cargo/**",
        "{,.}{clippy,rustfmt}.toml",
        "build.rs",
        "rust-toolchain{,.toml}",
        "{,.config/}nextest.toml",
        ".config/nextest/**",
        "{tarpaulin,bacon,miri,cross,Cross,dist-workspace,Makefile}.toml",
        "xtask/**",
    ],
    work: &["Cargo.lock", "*.rs"],
};

const GO: Defaults = Defaults {
    markers: &["go.mod", "*.go"],
    tests: &["*_test.go", "testdata/**", "export_test.go"],
    configuration: &[
        ".golangci*",
        "{staticcheck.conf,.golangci-lint-version,.testcoverage.yml,magefile.go,.air.toml,.mockery.yaml}",
        "magefiles/**",
        "vendor/{github.com/stretchr/testify,github.com/onsi/ginkgo,github.com/onsi/gomega,github.com/google/go-cmp,gotest.tools}/**",
    ],
    work: &["go.{mod,sum,work,work.sum}", "*.go", "vendor/**"],
};

const MAKE: Defaults = Defaults {
    markers: &["Makefile", "makefile", "GNUmakefile", "*.mk"],
    tests: &[],
    configuration: &["{Makefile,makefile,GNUmakefile}{,.*}", "*.{mk,mak,make}", ".makerc", "config.make"],
    work: &[],
};

const C: Defaults = Defaults {
    markers: &["CMakeLists.txt", "meson.build", "configure.ac", "*.c", "*.cc", "*.cpp", "*.cxx", "*.h", "*.hpp"],
    tests: &[
        "*[-_]{test,tests,unittest}.{c,cc,cpp,cxx,h,hpp}",
        "test[-_]*.{c,cc,cpp,cxx,h,hpp}",
        "{unittests,gtest,googletest}/**",
    ],
    configuration: &[
        "CTest*.cmake",
        "CMake{Presets,UserPresets}.json",
        "{DartConfiguration.tcl,.clang-tidy,.clang-format,.clangd,.cppcheck,cppcheck.cfg,CPPLINT.cfg,.gersemirc,meson_options.txt}",
        "*.supp",
    ],
    // These list source files and tests together: new code has to be listed, and missing tests show up in the counts.
    work: &["CMakeLists.txt", "meson.build", "*.{c,cc,cpp,cxx,h,hpp,hxx}", "{conan.lock,conanfile.txt,vcpkg.json}"],
};

const JAVA: Defaults = Defaults {
    markers: &["pom.xml", "build.gradle", "build.gradle.kts", "build.sbt", "*.java", "*.kt", "*.scala"],
    tests: &[
        "{androidTest,testFixtures,integrationTest,functionalTest,jmh}/**",
        "*{Test,Tests,IT,Spec,TestCase,Suite}.{java,kt,scala,groovy}",
        "Test*.{java,kt}",
    ],
    configuration: &[
        "pom.xml",
        "{build,settings,init}.gradle{,.kts}",
        "*.gradle{,.kts}",
        "gradle.properties",
        "{gradlew,mvnw}{,.bat,.cmd}",
        "gradle/wrapper/**",
        ".mvn/**",
        "{buildSrc,build-logic}/**",
        "build.sbt",
        "/project/*.{sbt,scala,properties}",
        "{checkstyle,pmd,spotbugs,detekt,ktlint,lint,suppressions}*.{xml,yml}",
        "{testng,junit-platform}*.{xml,properties}",
        ".scalafmt.conf",
        "build.xml",
    ],
    work: &["gradle.lockfile", "*.{java,kt,scala}", "libs.versions.toml"],
};

const RUBY: Defaults = Defaults {
    markers: &["Gemfile", "Rakefile", "*.gemspec", "*.rb"],
    tests: &["spec/**", "*_{spec,test}.rb", "test_*.rb", "features/{support,step_definitions}/**"],
    configuration: &[
        "{Rakefile,rakefile,Guardfile,Steepfile,Dangerfile,Appraisals}",
        "*.rake",
        "rakelib/**",
        ".{rspec,rspec-local,rubocop.yml,rubocop_todo.yml,simplecov,reek.yml,standard.yml,irbrc,pryrc,minitest.rb}",
        ".rubocop*",
        "sorbet/**",
        "config/environments/test.rb",
    ],
    work: &["Gemfile", "Gemfile.lock", "*.gemspec", "*.rb"],
};

const PHP: Defaults = Defaults {
    markers: &["composer.json", "*.php"],
    tests: &["*Test.php", "*Cest.php", "*.phpt", "{Tests,Test}/**"],
    configuration: &[
        "phpunit*",
        "{phpstan,psalm,phpcs,.phpcs,infection,phpbench,rector,pest,ecs,grumphp,codeception,behat,deptrac,phpmd}*.{xml,neon,php,json,yml,json5,dist}",
        "*.{neon,xml,yml}.dist",
        "phpstan-baseline.*",
        ".php-cs-fixer*",
    ],
    work: &["composer.lock", "*.php"],
};

const DOTNET: Defaults = Defaults {
    markers: &["*.csproj", "*.fsproj", "*.vbproj", "*.sln", "*.cs", "*.fs"],
    tests: &["{Test,Tests}/**", "*{Test,Tests,Specs}.{cs,fs,vb}", "*.{Tests,Test,UnitTests,IntegrationTests,Specs}/**"],
    configuration: &[
        "*.{Tests,Test,UnitTests,IntegrationTests,Specs}.{csproj,fsproj,vbproj}",
        "*.{runsettings,testsettings,playlist,ruleset,globalconfig,editorconfig}",
        "Directory.{Build,Packages,Solution}.{props,targets}",
        "*.targets",
        "{stylecop,xunit.runner,global,coverlet.runsettings}.json",
        "{nuget,NuGet}.config",
        "build.{cake,fsx}",
    ],
    work: &["packages.lock.json", "*.{csproj,fsproj,vbproj,sln,slnx,cs,fs,vb}"],
};

const ELIXIR: Defaults = Defaults {
    markers: &["mix.exs", "*.ex", "*.exs"],
    tests: &["*_test.exs", "test_helper.exs"],
    configuration: &["mix.exs", ".{formatter,credo,dialyzer_ignore,iex}.exs", "config/test.exs", "coveralls.json"],
    work: &["mix.lock", "*.ex"],
};

const PERL: Defaults = Defaults {
    markers: &["*.pm", "*.pl", "*.t", "Makefile.PL", "cpanfile", "dist.ini"],
    tests: &["{t,xt}/**", "*.t"],
    configuration: &["{Makefile.PL,Build.PL,dist.ini,.proverc,.perlcriticrc,.perltidyrc,minil.toml}"],
    work: &["{cpanfile,cpanfile.snapshot,MANIFEST}", "*.{pl,pm}"],
};
