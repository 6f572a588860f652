# Evaluated in a program that debugpy leaves. The children that it starts from now on would connect to nobody, and end; and
# debugpy leaves its trace function in every thread, with which Python up to 3.11 is several times slower. Both are undone.
#
# A debugger that attaches later sets its own trace function again. There must be no backslash and no triple quote in here.
import _thread
import os
import sys
import threading
import time

import pydevd
import pydevd_tracing
from _pydev_bundle import pydev_monkey
from _pydevd_bundle.pydevd_constants import PYDEVD_USE_SYS_MONITORING

debugger = pydevd.get_global_debugger()
# The folder of `debug_children.py` is gone with the session.
for name in ("DEVTETHER_PYTHON_CHILDREN", "DEVTETHER_DEBUGPY"):
    os.environ.pop(name, None)
pydev_monkey._get_apply_arg_patching = lambda: False


def is_left():
    return pydevd.get_global_debugger() in (None, debugger)


# A thread can remove only its own trace function: this one does that at its first event.
def remove_own_trace(frame, event, arg):
    frame.f_trace = None
    if sys.gettrace() is remove_own_trace:
        sys.settrace(None)


def remove_traces():
    # Of threads that start from now on.
    if threading._trace_hook == debugger.trace_dispatch:
        threading.settrace(None)
    threads = {ident: frame for ident, frame in sys._current_frames().items() if ident != threading.get_ident()}
    pydevd_tracing.set_trace_to_threads(remove_own_trace, list(threads), create_dummy_thread=False)
    # A loop that calls nothing has only the events of its frame.
    for frame in threads.values():
        while frame is not None:
            frame.f_trace = remove_own_trace
            frame = frame.f_back


def release():
    # Until the connection has ended, at most a minute.
    for _ in range(1200):
        if debugger.pydb_disposed or not is_left():
            break
        time.sleep(0.05)
    # A thread that is just leaving a stop sets the trace function again.
    for pause in (0, 0.2, 0.6):
        time.sleep(pause)
        if not debugger.pydb_disposed or not is_left():
            return
        pydevd_tracing.restore_sys_set_trace_func()
        pydev_monkey.undo_patch_thread_modules()
        if PYDEVD_USE_SYS_MONITORING:
            pydevd.pydevd_sys_monitoring.stop_monitoring(all_threads=True)
        else:
            remove_traces()


# Neither traced nor listed among the program's threads.
if debugger is not None:
    pydev_monkey.get_original_start_new_thread(_thread)(release, ())
