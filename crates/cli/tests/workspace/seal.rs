//! What a process in a view cannot do.

use std::fs::File;
use std::net::TcpListener;
use std::os::fd::{AsRawFd as _, OwnedFd};

use verdone_runtime::launcher::{Network, ViewPlan};
use verdone_runtime::process::Exit;

use crate::world::{World, as_everybody, is_root};

#[test]
fn it_has_no_capabilities_and_cannot_gain_any() {
    as_everybody(|world| {
        let view = world.open();
        let text = world.says(&view, "grep -E '^(Cap|NoNewPrivs)' /proc/self/status");
        for line in text.lines() {
            let (name, value) = line.split_once(':').unwrap();
            let expected = if name == "NoNewPrivs" { "1" } else { "0000000000000000" };
            assert_eq!(value.trim(), expected, "{name}");
        }
        let id = world.says(&view, "id -u");
        assert_eq!(id.trim() == "1000", is_root(), "root is somebody else inside: {id}");
        assert_ne!(id.trim(), "0");
    });
}

#[test]
fn masks_and_read_only_mounts_hold_in_a_namespace_of_its_own() {
    as_everybody(|world| {
        let view = world.open();
        let script = "unshare -Urm sh -c 'echo root of $(id -u); umount ../secret; umount -l ../token; cat ../token; ls -A ../secret; \
                      mount -o remount,rw,bind /; touch ../x; mount -o remount,rw,bind ../secret; touch ../secret/x' 2>/dev/null; true";
        let text = world.says(&view, script);
        assert_eq!(text, "root of 0\n", "it is root of its own namespace and sees nothing more");
        assert!(!world.path("x").exists() && !world.path("secret/x").exists());
    });
}

#[test]
fn settings_of_the_kernel_cannot_be_opened_for_writing() {
    as_everybody(|world| {
        let view = world.open();
        let files = "/proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sysrq-trigger /sys/kernel/uevent_helper";
        let script = format!("for f in {files}; do (: >> $f) 2>/dev/null && echo $f; done; true");
        assert_eq!(world.says(&view, &script), "");
        // The folders of its own processes stay writable: nested sandboxes map their ids there.
        world.says(&view, "echo 0 > /proc/self/oom_score_adj");
    });
}

#[test]
fn disks_of_the_machine_cannot_be_opened() {
    as_everybody(|world| {
        let view = world.open();
        let script = "for f in $(find /dev -type b 2>/dev/null); do (: < $f) 2>/dev/null && echo $f; done; echo x > /dev/null && head -c1 /dev/zero | wc -c";
        assert_eq!(world.says(&view, script), "1\n");
    });
}

#[test]
fn a_terminal_can_be_made() {
    as_everybody(|world| {
        let view = world.open();
        let script = "command -v script > /dev/null || { echo seen; exit 0; }; script -qec 'test -t 1 && echo seen' /dev/null";
        assert_eq!(world.says(&view, script).trim(), "seen");
    });
}

#[test]
fn inherited_descriptors_are_closed() {
    as_everybody(|world| {
        let folder = OwnedFd::from(File::open(world.path("secret")).unwrap());
        rustix::io::fcntl_setfd(&folder, rustix::io::FdFlags::empty()).unwrap();
        let view = world.open();
        let text = world.says(&view, &format!("ls -A /proc/self/fd/{}/ 2>&1; true", folder.as_raw_fd()));
        assert!(!text.contains("key"), "{text}");
        assert_eq!(
            world.says(&view, "ls /proc/self/fd | sort -n | head -3 | tr '\\n' ' '; ls /proc/self/fd | wc -l"),
            "0 1 2 4\n"
        );
    });
}

#[test]
fn a_network_that_is_off_has_only_a_loopback_of_its_own() {
    as_everybody(|world| {
        let outside = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = outside.local_addr().unwrap().port();
        let connect = format!("exec 2>/dev/null; bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'");
        let open = world.open();
        assert_eq!(world.shell(&open, &connect).1, Exit::Code(0));
        drop(open);
        let plan = ViewPlan { network: Network::Off, ..world_plan_again(world) };
        let view = world.open_plan(&plan).unwrap();
        assert_ne!(world.shell(&view, &connect).1, Exit::Code(0));
        let interfaces = world.says(&view, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '");
        // Some kernels add tunnel interfaces, which lead nowhere.
        assert!(interfaces.lines().any(|name| name == "lo"), "{interfaces}");
        assert!(!interfaces.lines().any(|name| name.starts_with("eth") || name.starts_with("en")), "{interfaces}");
        let own =
            "python3 -c 'import socket; s=socket.create_server((\"127.0.0.1\", 0)); socket.create_connection(s.getsockname())'";
        world.says(&view, &format!("command -v python3 >/dev/null && python3 -c '' 2>/dev/null || exit 0; {own}"));
    });
}

/// A second view needs new work folders.
fn world_plan_again(world: &World) -> ViewPlan {
    let mut plan = world.plan();
    plan.mounts[2] = world.overlay("again", world.path("project/node_modules"));
    plan
}
