# Runs a Python program once its debugger has attached: `python [OPTIONS] -c THIS FOLDER (FILE | -m MODULE | -c CODE) [ARGUMENTS]`.
# FOLDER holds the package `debugpy`. The port goes to stderr: stdin and stdout may be those of a protocol.
import os
import sys

folder, target = sys.argv[1], sys.argv[2:]
os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
sys.path.insert(0, folder)
import debugpy

sys.path.remove(folder)
port = debugpy.listen(("127.0.0.1", 0))[1]
print("Debugger listening on port %d" % port, file=sys.stderr, flush=True)
debugpy.wait_for_client()
# pydevd's own, whose frames are not shown.
from _pydevd_bundle import pydevd_runpy as runpy


def enter(folder):
    # With -c, the current folder is the first one, unless Python is isolated.
    if sys.path[:1] == [""]:
        sys.path[0] = folder


if target[0] == "-m":
    sys.argv = target[1:]
    enter(os.getcwd())
    runpy.run_module(target[1], run_name="__main__", alter_sys=True)
elif target[0] == "-c":
    sys.argv = ["-c"] + target[2:]
    exec(compile(target[1], "<string>", "exec"), {"__name__": "__main__"})
else:
    sys.argv = target
    enter(os.path.dirname(os.path.abspath(target[0])))
    runpy.run_path(target[0], run_name="__main__")
