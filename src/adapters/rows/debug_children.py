# Loaded by each Python below a debugged program, and by the program itself, as `sitecustomize`: by PYTHONPATH, as NODE_OPTIONS
# is for Node. One that the program has not started itself, but through a shell, make or another program, connects to the
# session here; debugpy makes the others connect. Each that is debugged reports over the pipe of the session what debugpy
# does not debug in it.
#
# It may be loaded by any Python, from 2.7 on. After the session its folder is gone.
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
ADDRESS = "DEVTETHER_PYTHON_CHILDREN"
DEBUGPY = "DEVTETHER_DEBUGPY"


# The user's own `sitecustomize`, which this one stands before.
def load_own():
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != FOLDER]
    this = sys.modules.pop(__name__)
    try:
        __import__(__name__)
    except ImportError as error:
        if getattr(error, "name", __name__) != __name__:
            raise
    finally:
        # The import that loads this one looks it up.
        sys.modules.setdefault(__name__, this)


# Whether debugpy is on the command line: it has started this process, or changed how the program starts it.
def is_started_by_debugpy():
    with open("/proc/self/cmdline", "rb") as file:
        words = file.read()
    return b"debugpy" in words or b"pydevd" in words


# A program with Python inside of it, such as gdb, is not the user's.
def is_interpreter():
    name = os.path.basename(os.path.realpath("/proc/self/exe"))
    return name.startswith(("python", "pypy"))


def is_subinterpreter():
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            module = __import__(name)
        except ImportError:
            continue
        current = module.get_current()
        return (current[0] if isinstance(current, tuple) else int(current)) != 0
    return False


# Connects to the session, and waits until it is to run.
def connect():
    address, folder = os.environ.get(ADDRESS), os.environ.get(DEBUGPY)
    if not address or not folder or not is_interpreter() or is_subinterpreter():
        return False
    sys.path.insert(0, os.path.dirname(folder))
    try:
        import debugpy
    finally:
        del sys.path[0]
    host, port = address.rsplit(":", 1)
    debugpy.configure(subProcess=True)
    debugpy.connect((host, int(port)))
    debugpy.wait_for_client()
    return True


def report(text):
    try:
        pipe = os.open(os.path.join(FOLDER, "..", "children"), os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        # The session is gone.
        return
    try:
        os.write(pipe, ("!%d\0%s\n" % (os.getpid(), text)).encode("utf-8", "replace"))
    except OSError:
        pass
    finally:
        os.close(pipe)


# Who replaces the trace function of this thread; none where that is the debugger, or `threading` for it.
def find_tracer():
    frame = sys._getframe(2)
    if frame.f_code.co_name == "_internal_set_trace":
        frame = frame.f_back
    file = frame.f_code.co_filename
    is_own = "pydevd" in file or "debugpy" in file or os.path.basename(file) == "threading.py"
    return None if is_own else "%s:%d" % (file, frame.f_lineno)


def watch():
    reported = set()

    def report_once(what, text):
        if what not in reported:
            reported.add(what)
            report(text)

    def hook(event, arguments):
        # From 3.12 on debugpy uses `sys.monitoring`.
        if event == "sys.settrace" and sys.version_info < (3, 12):
            tracer = find_tracer()
            if tracer is not None:
                report_once(
                    event,
                    "%s has replaced debugpy's trace function, and nothing stops that thread any more: run it without "
                    "coverage or another tracer (pytest: `--no-cov`), or with Python 3.12 or newer" % tracer,
                )
        elif event == "import" and arguments[0] == "gevent.monkey" and "GEVENT_SUPPORT" not in os.environ:
            report_once(
                arguments[0],
                "it loads gevent.monkey, which debugpy does not follow: launch it again with `GEVENT_SUPPORT=True` in its "
                "environment",
            )
        elif event == "cpython.PyInterpreterState_New":
            report_once(event, "it has started a subinterpreter, in which debugpy debugs nothing")

    sys.addaudithook(hook)


def start():
    if sys.version_info < (3, 8):
        return
    try:
        if is_started_by_debugpy() or connect():
            watch()
    except Exception:
        # It runs without a debugger, which the session reports.
        pass


try:
    load_own()
finally:
    start()
