use super::*;

fn kind(line: &str) -> Option<Kind> {
    classify(&line.split_whitespace().collect::<Vec<_>>())
}

#[test]
fn the_frameworks_are_known_by_their_commands_in_any_wrapper() {
    for (line, framework) in [
        ("jest", Framework::Jest),
        ("npx jest --ci", Framework::Jest),
        ("npx -y jest@29", Framework::Jest),
        ("npx --no-install jest src", Framework::Jest),
        ("yarn jest -t name", Framework::Jest),
        ("pnpm exec jest", Framework::Jest),
        ("npm exec -- jest", Framework::Jest),
        ("node_modules/.bin/jest", Framework::Jest),
        ("node --experimental-vm-modules node_modules/jest/bin/jest.js", Framework::Jest),
        ("CI=1 react-scripts test", Framework::Jest),
        ("pnpm vitest run", Framework::Vitest),
        ("npx vitest", Framework::Vitest),
        ("bunx vitest run", Framework::Vitest),
        ("npx mocha -R dot", Framework::Mocha),
        ("npx c8 mocha", Framework::Mocha),
        ("nyc --reporter=text mocha test", Framework::Mocha),
        ("npx nyc --check-coverage --lines 99 mocha test", Framework::Mocha),
        ("npx ava", Framework::Ava),
        ("node --test", Framework::NodeTest),
        ("node --import tsx --test src", Framework::NodeTest),
        ("bun test", Framework::Bun),
        ("npx tap", Framework::Tap),
        ("prove -lr t", Framework::Tap),
        ("bats t/", Framework::Bats),
        ("pytest -q", Framework::Pytest),
        ("python -m pytest", Framework::Pytest),
        ("python3.12 -m pytest tests", Framework::Pytest),
        ("uv run pytest", Framework::Pytest),
        ("uv run --with x pytest", Framework::Pytest),
        ("uvx pytest", Framework::Pytest),
        ("poetry run pytest -x", Framework::Pytest),
        ("pipenv run python -m pytest", Framework::Pytest),
        ("coverage run -m pytest", Framework::Pytest),
        ("timeout 60 pytest", Framework::Pytest),
        ("timeout -k 5 60s pytest", Framework::Pytest),
        ("env -u X PYTHONPATH=. nice -n 5 pytest", Framework::Pytest),
        ("sudo -u ci .venv/bin/pytest", Framework::Pytest),
        ("time pytest", Framework::Pytest),
        ("stdbuf -oL pytest", Framework::Pytest),
        ("docker compose exec -T web pytest -q", Framework::Pytest),
        ("docker run --rm app python -m pytest", Framework::Pytest),
        ("bash -lc pytest", Framework::Pytest),
        ("python -m unittest discover", Framework::Unittest),
        ("python manage.py test shop", Framework::Unittest),
        ("./manage.py test", Framework::Unittest),
        ("nose2 -v", Framework::Unittest),
        ("go test ./...", Framework::Go),
        ("gotestsum --format short", Framework::Go),
        ("cargo t", Framework::CargoTest),
        ("cargo +nightly test -p x -- name", Framework::CargoTest),
        ("cargo nextest run", Framework::Nextest),
        ("cargo llvm-cov nextest", Framework::Nextest),
        ("bundle exec rspec", Framework::Rspec),
        ("bin/rspec spec/a_spec.rb", Framework::Rspec),
        ("bin/rails test", Framework::Minitest),
        ("mvn -q test", Framework::Surefire),
        ("./mvnw -B test -pl app", Framework::Surefire),
        ("./gradlew test", Framework::Gradle),
        ("gradle :app:testDebugUnitTest", Framework::Gradle),
        ("vendor/bin/phpunit", Framework::Phpunit),
        ("php vendor/bin/phpunit --filter x", Framework::Phpunit),
        ("php artisan test", Framework::Phpunit),
    ] {
        assert_eq!(kind(line), Some(Kind::Direct(framework)), "{line}");
    }
}

#[test]
fn scripts_and_targets_that_test_are_runners() {
    for line in [
        "npm test",
        "npm t",
        "npm run test:unit",
        "npm run test -- --ci",
        "npm --prefix web test",
        "npm test -w web",
        "yarn test",
        "yarn workspace web test",
        "yarn workspaces foreach run test",
        "pnpm test",
        "pnpm -r test",
        "pnpm --filter web test",
        "pnpm run --filter web test",
        "bun run test",
        "turbo run test",
        "npx turbo test",
        "npx nx test web",
        "nx run-many -t test",
        "lerna run test",
        "make test",
        "make -C sub -j4 test",
        "just test",
        "just test-unit",
        "task test",
        "tox",
        "tox -e py311",
        "nox",
        "rake test",
        "rake spec",
        "composer test",
        "dotnet test",
        "mix test",
        "swift test",
        "deno test",
        "ctest",
        "./scripts/test",
        "./run_tests.sh",
        "bash scripts/test.sh",
        "python tests/run.py",
        "python test_cart.py",
        "node test/run.js",
        "ruby test/a_test.rb",
        "perl t/a.t",
        "poe test",
        "CI=1 npm test",
    ] {
        assert_eq!(kind(line), Some(Kind::Runner), "{line}");
    }
}

#[test]
fn what_may_run_tests_among_other_things_is_loose() {
    for line in [
        "make",
        "make all",
        "npm run build",
        "make check",
        "mvn install",
        "./gradlew build",
        "just ci",
        "./scripts/ci.sh",
        "npm run test:lint",
    ] {
        assert_eq!(kind(line), Some(Kind::Loose), "{line}");
    }
}

#[test]
fn other_commands_are_no_test_runs() {
    for line in [
        "",
        "ls test",
        "cat jest.log",
        "grep -rn FAILED tests",
        "git log --oneline",
        "git commit -m npm test",
        "echo npm test",
        "which pytest",
        "pip install pytest",
        "npm install jest",
        "npm ci",
        "npm i -D vitest",
        "yarn add jest",
        "apt-get install bats",
        "npx jest --version",
        "pytest --collect-only -q",
        "pytest --version",
        "npx jest --listTests",
        "cargo test --no-run",
        "cargo test -- --list",
        "cargo nextest list",
        "cargo build --tests",
        "cargo clippy --tests",
        "go test -list .",
        "go vet ./...",
        "go build ./...",
        "npx eslint test",
        "npx prettier --check tests",
        "vim test.py",
        "sed -n 1,20p tests/test_a.py",
        "test -f x",
        "[ -f pytest.ini ]",
        "rm -rf test",
        "mkdir tests",
        "python setup.py build",
        "python -c print(1)",
        "node index.js",
        "make clean",
        "mvn compile",
        "mvn package -DskipTests",
        "npm run lint",
        "npm run dev",
        "docker build -t test .",
        "docker ps",
        "head -50 test.log",
        "find . -name test",
        "rg pytest",
        "tail -f test-output.log",
        "coverage report",
        "python -m pip install pytest",
        "ruby -e puts(1)",
        "rspec --dry-run",
        "docker compose up tap",
        "ssh host ls",
        "ruby -c spec/a_spec.rb",
        "bash -n scripts/test.sh",
        "node --check test/a.js",
    ] {
        assert_eq!(kind(line), None, "{line}");
    }
}

#[test]
fn only_a_test_command_at_the_end_owns_the_exit_code() {
    let ran = |lines: &[&str]| {
        Ran::from_commands(&lines.iter().map(|line| line.split_whitespace().collect()).collect::<Vec<Vec<&str>>>())
    };
    assert!(ran(&["pytest"]).unwrap().exit_is_its_own);
    assert!(ran(&["cd web", "npm test"]).unwrap().exit_is_its_own);
    assert!(!ran(&["pytest", "tail -5"]).unwrap().exit_is_its_own);
    assert!(!ran(&["pytest", "true"]).unwrap().exit_is_its_own);
    assert!(!ran(&["npx jest", "npx mocha"]).unwrap().exit_is_its_own);
    assert!(!ran(&["! pytest"]).unwrap().exit_is_its_own);
    assert!(ran(&["git status", "ls"]).is_none());
}

#[test]
fn a_wrapper_and_what_it_wraps_are_one_command() {
    let ran = |lines: &[&str]| {
        Ran::from_commands(&lines.iter().map(|line| line.split_whitespace().collect()).collect::<Vec<Vec<&str>>>())
    };
    for lines in [
        &["npx jest src", "jest src"][..],
        &["cd web", "env CI=1 nice -n 5 go test ./...", "nice -n 5 go test ./...", "go test ./..."],
        &["timeout 60 npm test", "npm test"],
    ] {
        let ran = ran(lines).unwrap();
        assert!(ran.exit_is_its_own && ran.kinds.len() == 1, "{lines:?}");
    }
    assert!(!ran(&["npx jest", "jest", "tail -5"]).unwrap().exit_is_its_own);
    assert!(!ran(&["test -d web", "pytest"]).unwrap().exit_is_its_own);
    assert!(!ran(&["mvn test -Dmaven.test.failure.ignore=true"]).unwrap().exit_is_its_own);
}

#[test]
fn what_a_command_was_told_to_test_is_known() {
    for (line, targets) in [
        ("npx vitest run src --reporter=dot", &["src"][..]),
        ("python -m pytest -q tests/test_a.py::test_b", &["tests/test_a.py::test_b"]),
        ("pytest -k total", &[]),
        ("go test ./a ./b", &["./a", "./b"]),
        ("python -m unittest test_cart", &["test_cart"]),
        ("docker compose exec web pytest unit", &["unit"]),
        ("cargo test", &[]),
        ("npm test", &[]),
    ] {
        let ran = Ran::from_commands(&[line.split_whitespace().collect()]).unwrap();
        assert_eq!(ran.targets, targets, "{line}");
    }
}
