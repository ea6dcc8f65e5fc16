use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::time::Instant;

use verdone_runtime::git::{RepoPath, TreeObstacle};
use verdone_testkit::PATIENCE;

use crate::git_module::repo::{Repo, odd_names};
use crate::git_module::workspace::{Workspace, tree_by_git};

fn pipe(path: &std::path::Path) {
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
}

#[test]
fn every_kind_of_change_gives_the_tree_that_git_add_gives() {
    let repo = Repo::new();
    repo.write("was-file", "f");
    repo.write("was-folder/x", "x");
    repo.write("moved/x", "x");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "more"]);
    let workspace = Workspace::new(&repo);
    for name in odd_names() {
        workspace.write(name, "odd");
    }
    workspace.write("a.txt", "changed");
    fs::remove_file(workspace.path("dir/b.txt")).unwrap();
    fs::set_permissions(workspace.path("run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::remove_file(workspace.path("link")).unwrap();
    symlink("nowhere", workspace.path("link")).unwrap();
    fs::remove_file(workspace.path("was-file")).unwrap();
    workspace.write("was-file/inner", "i");
    fs::remove_dir_all(workspace.path("was-folder")).unwrap();
    workspace.write("was-folder", "now a file");
    fs::rename(workspace.path("moved"), workspace.path("elsewhere")).unwrap();
    symlink("elsewhere", workspace.path("moved")).unwrap();
    workspace.write("noise.log", "ignored");
    let tree = workspace.imported(&repo);
    assert_eq!(tree, tree_by_git(&repo, &workspace.tree()));
    assert_eq!(workspace.imported(&repo), tree, "a second look sees the same");
}

#[test]
fn the_agents_own_repository_counts_for_nothing() {
    let repo = Repo::new();
    let workspace = Workspace::new(&repo);
    workspace.write("a.txt", "agent");
    workspace.git(&["commit", "-qam", "agent's own"]);
    workspace.git(&["update-index", "--assume-unchanged", "dir/b.txt"]);
    workspace.write("dir/b.txt", "hidden");
    workspace.write(".git/info/exclude", "*\n");
    workspace.write("new", "n");
    let tree = workspace.imported(&repo);
    assert_eq!(repo.git(&["diff", "--name-only", "HEAD", tree.as_str()]), "a.txt\ndir/b.txt\nnew");
}

#[test]
fn planted_repositories_are_obstacles_and_their_code_does_not_run() {
    let repo = Repo::new();
    let workspace = Workspace::new(&repo);
    let proof = repo.home().join("executed");
    for name in ["planted", "dir/inner"] {
        fs::create_dir_all(workspace.path(name)).unwrap();
        workspace.git(&["-C", name, "init", "-q"]);
        workspace.write(format!("{name}/f"), "x");
        workspace.git(&["-C", name, "add", "-A"]);
        workspace.git(&["-C", name, "commit", "-qm", "planted"]);
        let script = format!("touch '{}'", proof.display());
        workspace.git(&["-C", name, "config", "core.fsmonitor", &script]);
        workspace.git(&["-C", name, "config", "filter.x.clean", &script]);
        workspace.write(format!("{name}/.gitattributes"), "* filter=x\n");
    }
    workspace.write("ok", "1");
    for _ in 0..2 {
        let read = workspace.read(&repo.git);
        assert_eq!(read.obstacles, ["dir/inner", "planted"].map(|name| TreeObstacle::Nested(name.into())));
        assert_eq!(repo.git(&["diff", "--name-only", "HEAD", read.tree.as_str()]), "ok");
    }
    assert!(!proof.exists());
}

#[test]
fn submodules_are_empty_folders_and_a_changed_one_is_an_obstacle() {
    let repo = Repo::new();
    let other = repo.home().join("other");
    fs::create_dir(&other).unwrap();
    repo.git(&["-C", other.to_str().unwrap(), "init", "-q"]);
    repo.git(&["-C", other.to_str().unwrap(), "commit", "-qm", "sub", "--allow-empty"]);
    repo.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other.to_str().unwrap(), "sub"]);
    repo.git(&["commit", "-qm", "with submodule"]);
    let workspace = Workspace::new(&repo);
    assert_eq!(fs::read_dir(workspace.path("sub")).unwrap().count(), 0);
    assert_eq!(workspace.imported(&repo).0, repo.git(&["rev-parse", "HEAD^{tree}"]));
    workspace.git(&["-C", "sub", "init", "-q"]);
    workspace.git(&["-C", "sub", "commit", "-qm", "other", "--allow-empty"]);
    let read = workspace.read(&repo.git);
    assert_eq!(read.obstacles, [TreeObstacle::Submodule("sub".into())]);
    assert_eq!(read.tree.0, repo.git(&["rev-parse", "HEAD^{tree}"]));
}

#[test]
fn pipes_and_sockets_do_not_hang_it() {
    let repo = Repo::new();
    let workspace = Workspace::new(&repo);
    let started = Instant::now();
    pipe(&workspace.path("untracked-pipe"));
    pipe(&workspace.path("dir/.gitattributes"));
    fs::remove_file(workspace.path(".gitignore")).unwrap();
    pipe(&workspace.path(".gitignore"));
    fs::remove_file(workspace.path("a.txt")).unwrap();
    pipe(&workspace.path("a.txt"));
    fs::remove_file(workspace.path("run.sh")).unwrap();
    let _socket = UnixListener::bind(workspace.path("run.sh")).unwrap();
    let read = workspace.read(&repo.git);
    let expected = [".gitignore", "a.txt", "dir/.gitattributes", "run.sh"].map(|name| TreeObstacle::NotAFile(name.into()));
    assert_eq!(read.obstacles, expected);
    assert!(started.elapsed() < PATIENCE);
}

#[test]
fn pipes_in_a_planted_repository_do_not_hang_it() {
    let repo = Repo::new();
    let workspace = Workspace::new(&repo);
    let started = Instant::now();
    for name in ["HEAD", "commondir"] {
        workspace.git(&["init", "-q", name]);
        let planted = workspace.path(format!("{name}/.git/{name}"));
        let _ = fs::remove_file(&planted);
        pipe(&planted);
    }
    // In another folder, named by a `.git` file.
    fs::create_dir_all(workspace.path("elsewhere/repository/objects")).unwrap();
    pipe(&workspace.path("elsewhere/repository/HEAD"));
    workspace.write("named/.git", "gitdir: ../elsewhere/repository\n");
    workspace.write("ok", "1");
    let read = workspace.read(&repo.git);
    assert!(read.obstacles.contains(&TreeObstacle::Nested("commondir".into())), "{:?}", read.obstacles);
    assert!(started.elapsed() < PATIENCE);
}

#[test]
fn a_broken_repository_in_the_tree_is_an_obstacle() {
    let repo = Repo::new();
    let workspace = Workspace::new(&repo);
    workspace.git(&["init", "-q", "planted"]);
    pipe(&workspace.path("far"));
    symlink("../../far", workspace.path("planted/.git/commondir")).unwrap();
    let read = workspace.read(&repo.git);
    assert_eq!(read.obstacles, [TreeObstacle::Nested("planted".into())]);
    assert_eq!(read.tree.0, repo.git(&["rev-parse", "HEAD^{tree}"]));
}

#[test]
fn files_outside_of_a_sparse_checkout_stay_in_the_tree() {
    let repo = Repo::new();
    repo.write("out/f", "f");
    repo.write("in/g", "g");
    repo.write("in/h", "h");
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "-qm", "folders"]);
    repo.git(&["sparse-checkout", "set", "in"]);
    // The user creates it anyway.
    repo.write("out/f", "f");
    let workspace = Workspace::new(&repo);
    assert!(!workspace.path("out/f").exists());
    fs::remove_file(workspace.path("in/g")).unwrap();
    for content in ["1", "2"] {
        workspace.write("in/h", content);
        let tree = workspace.imported(&repo);
        assert_eq!(repo.git(&["diff", "--name-only", "HEAD", tree.as_str()]), "in/g\nin/h");
    }
}

#[test]
fn large_and_unreadable_files_are_obstacles_and_stay_out() {
    let repo = Repo::new();
    let mut workspace = Workspace::new(&repo);
    workspace.largest_file = 10;
    workspace.write("large", "12345678901");
    workspace.write("a.txt", "12345678901");
    workspace.write("small", "1");
    let mut expected = vec![
        TreeObstacle::TooLarge { path: "a.txt".into(), bytes: 11 },
        TreeObstacle::TooLarge { path: "large".into(), bytes: 11 },
    ];
    // Root can read every file.
    if !rustix::process::geteuid().is_root() {
        workspace.write("closed", "1");
        fs::set_permissions(workspace.path("closed"), fs::Permissions::from_mode(0o000)).unwrap();
        expected.push(TreeObstacle::Unreadable("closed".into()));
    }
    let read = workspace.read(&repo.git);
    assert_eq!(read.obstacles, expected);
    assert_eq!(repo.git(&["diff", "--name-only", "HEAD", read.tree.as_str()]), "small");
}

#[test]
fn files_that_git_cannot_add_are_obstacles_and_the_others_are_in_the_tree() {
    let repo = Repo::new();
    let workspace = Workspace::new(&repo);
    workspace.write(".gitattributes", "*.utf working-tree-encoding=UTF-16\n");
    for name in ["b.utf", "y.utf", "a.new", "m.new", "z.new"] {
        workspace.write(name, "abc");
    }
    let read = workspace.read(&repo.git);
    let names: Vec<String> = read.obstacles.iter().map(ToString::to_string).collect();
    assert!(names.len() == 2 && names[0].starts_with("git cannot add b.utf: ") && names[1].contains("y.utf"), "{names:?}");
    assert_eq!(repo.git(&["diff", "--name-only", "HEAD", read.tree.as_str()]), ".gitattributes\na.new\nm.new\nz.new");
}

#[test]
fn names_that_no_tree_may_have_are_obstacles_and_the_others_are_in_the_tree() {
    let repo = Repo::new();
    let workspace = Workspace::new(&repo);
    let reserved = [".GIT/x", ".git ", "dir/.Git", "git~1/a\nb"];
    for name in reserved.into_iter().chain(["fine", ".gitx", "dir/git"]) {
        workspace.write(name, "x");
    }
    for number in 0..20 {
        workspace.write(format!("git~1/{number}"), "x");
    }
    let read = workspace.read(&repo.git);
    let is_refused = |name: &&str| {
        read.obstacles.iter().any(|found| matches!(found, TreeObstacle::Refused { path, .. } if *path == RepoPath::from(*name)))
    };
    assert_eq!((read.obstacles.len(), reserved.iter().all(is_refused)), (24, true), "{:?}", read.obstacles);
    assert_eq!(repo.git(&["diff", "--name-only", "HEAD", read.tree.as_str()]), ".gitx\ndir/git\nfine");
}

#[test]
fn folders_nested_deeper_than_a_path_can_name_are_an_obstacle() {
    let repo = Repo::new();
    let workspace = Workspace::new(&repo);
    let deep = vec!["d".repeat(200); 15].join("/");
    workspace.write(format!("upper/{deep}/file"), "x");
    workspace.write(format!("lower/{deep}/file"), "x");
    fs::rename(workspace.path("lower"), workspace.path(format!("upper/{deep}/lower"))).unwrap();
    let read = workspace.read(&repo.git);
    assert!(matches!(&read.obstacles[..], [TreeObstacle::Unreadable(_)]), "{:?}", read.obstacles);
}

#[test]
fn folders_without_rights_are_made_readable_and_links_are_not_followed() {
    let repo = Repo::new();
    let workspace = Workspace::new(&repo);
    let outside = repo.home().join("outside");
    fs::create_dir(&outside).unwrap();
    let set = |path: &std::path::Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    set(&outside, 0o000);
    symlink(&outside, workspace.path("to-outside")).unwrap();
    workspace.write("closed/inner/file", "x");
    fs::create_dir(workspace.path("empty")).unwrap();
    for name in ["closed/inner", "closed", "empty", "."] {
        set(&workspace.path(name), 0o004);
    }
    let tree = workspace.imported(&repo);
    assert_eq!(repo.git(&["diff", "--name-only", "HEAD", tree.as_str()]), "closed/inner/file\nto-outside");
    assert_eq!((mode(&workspace.path("closed")), mode(&outside)), (0o704, 0o000));
    set(&outside, 0o700);
}

#[test]
fn excluded_paths_stay_as_the_base_has_them() {
    let repo = Repo::new();
    repo.write(".verdone/runs/kept", "base");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "runs"]);
    let workspace = Workspace::new(&repo);
    workspace.write(".verdone/runs/kept", "agent");
    workspace.write(".verdone/runs/new", "agent");
    workspace.write(".verdone/config.toml", "agent");
    let tree = workspace.imported(&repo);
    assert_eq!(repo.git(&["diff", "--name-only", "HEAD", tree.as_str()]), ".verdone/config.toml");
}

#[test]
fn objects_are_imported_few_or_many_and_only_those_that_are_new() {
    for count in [3, 300] {
        let repo = Repo::new();
        let workspace = Workspace::new(&repo);
        for number in 0..count {
            workspace.write(format!("many/{number}"), format!("content {number}"));
        }
        let tree = workspace.imported(&repo);
        assert_eq!(repo.files_of(&tree).len(), 5 + count);
        repo.git(&["fsck", "--strict", "--connectivity-only", tree.as_str()]);
        let packs = repo.git(&["count-objects", "-v"]);
        assert!(packs.contains(if count > 100 { "packs: 1" } else { "packs: 0" }), "{packs}");
        fs::remove_dir_all(workspace.objects()).unwrap();
        assert_eq!(repo.git(&["show", &format!("{tree}:many/2")]), "content 2");
    }
}

#[test]
fn an_object_that_is_not_what_its_name_says_is_not_imported() {
    let repo = Repo::new();
    let workspace = Workspace::new(&repo);
    workspace.write("good", "good");
    let id = workspace.git(&["hash-object", "good"]);
    let loose = |id: &str, objects: std::path::PathBuf| objects.join(&id[..2]).join(&id[2..]);
    workspace.write("other", "bad!");
    let bad = loose(&workspace.git(&["hash-object", "-w", "other"]), workspace.path(".git/objects"));
    let planted = loose(&id, workspace.objects());
    fs::create_dir_all(planted.parent().unwrap()).unwrap();
    fs::copy(bad, planted).unwrap();
    workspace.try_read(&repo.git).unwrap_err();
    assert!(!loose(&id, repo.path(".git/objects")).exists());
}

#[test]
fn a_file_is_replaced_added_or_removed_in_a_tree() {
    let repo = Repo::new();
    let base = repo.head();
    let tree = verdone_core::base::id::Oid(repo.git(&["rev-parse", "HEAD^{tree}"]));
    let changes = [
        ("a.txt".into(), Some(("100644", b"marked\n".to_vec()))),
        ("docs/PLAN.md".into(), Some(("100755", b"new\n".to_vec()))),
        ("dir/b.txt".into(), None),
    ];
    let made = repo.git.replace_in_tree(&tree, &changes).unwrap();
    assert_eq!(repo.git(&["show", &format!("{made}:a.txt")]), "marked");
    let difference = repo.git(&["diff", "--name-status", base.as_str(), made.as_str()]);
    assert_eq!(difference, "M\ta.txt\nD\tdir/b.txt\nA\tdocs/PLAN.md");
    assert_eq!(repo.git.replace_in_tree(&tree, &[]).unwrap(), tree);
    // At the top level, where a folder may be in the way.
    let changes = [
        ("a.txt".into(), None),
        ("dir".into(), Some(("100644", b"a file now\n".to_vec()))),
        ("PLAN\n.md".into(), Some(("100755", b"new\n".to_vec()))),
        ("no such file".into(), None),
    ];
    let made = repo.git.replace_in_tree(&tree, &changes).unwrap();
    let difference = repo.git(&["diff", "--no-renames", "--name-status", base.as_str(), made.as_str()]);
    assert_eq!(difference, "A\t\"PLAN\\n.md\"\nD\ta.txt\nA\tdir\nD\tdir/b.txt");
    assert_eq!(repo.git(&["fsck", "--strict", "--no-dangling", made.as_str()]), "");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}
