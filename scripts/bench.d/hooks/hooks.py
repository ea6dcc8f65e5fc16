"""The same hooks in Python, for comparison: one script for all events."""

import json
import os
import re
import sys
import time

STATE = os.path.join(os.environ.get("RALPH_ROOT", os.path.dirname(os.path.abspath(__file__))), ".ralph")
FORBIDDEN = re.compile(r"(^|\s)git\s+(push|merge)(\s|$)")
FAILED = re.compile(r"FAILED|not\sok|failing|AssertionError")


def before(event):
    arguments = event.get("tool_input", {})
    if event.get("tool_name") in ("Edit", "Write"):
        wanted = "Read: " + arguments.get("file_path", "")
        try:
            with open(os.path.join(STATE, "session.log"), encoding="utf-8") as log:
                known = any(line.rstrip("\n") == wanted for line in log)
        except OSError:
            known = False
        if not known:
            return {"decision": "block", "message": "read the file first"}
    elif event.get("tool_name") == "Bash" and FORBIDDEN.search(arguments.get("command", "")):
        return {"decision": "block", "message": "no push and no merge here"}
    return {"decision": "allow"}


def after(event):
    if event.get("tool_name") == "Read":
        with open(os.path.join(STATE, "session.log"), "a", encoding="utf-8") as log:
            log.write("Read: " + event.get("tool_input", {}).get("file_path", "") + "\n")
    elif event.get("tool_name") == "Bash":
        output = event.get("tool_response", {}).get("stdout", "")
        if FAILED.search(output):
            with open(os.path.join(STATE, "failures.log"), "a", encoding="utf-8") as log:
                log.write("\n".join(output.splitlines()[:100]) + "\n")


def stop(event):
    try:
        with open(os.path.join(STATE, "current-story"), encoding="utf-8") as file:
            story = file.read().strip()
    except OSError:
        return
    if story:
        with open(os.path.join(STATE, "sessions.log"), "a", encoding="utf-8") as log:
            log.write(f"incomplete:{event.get('session_id')}:{story}:{int(time.time())}\n")


def main():
    event = json.load(sys.stdin)
    name = event.get("hook_event_name")
    if name == "PreToolUse":
        print(json.dumps(before(event)))
    elif name == "PostToolUse":
        after(event)
    elif name == "Stop":
        stop(event)


main()
