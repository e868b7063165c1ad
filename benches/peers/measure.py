"""Runs a command and prints what it took, its children included: measure.py RESULT COMMAND...

This process is small, because the kernel counts the memory of a process before `exec` too.
"""

import os
import sys
import time

start = time.monotonic()
child = os.fork()
if child == 0:
    try:
        os.execvp(sys.argv[2], sys.argv[2:])
    finally:
        os._exit(127)
_, status, usage = os.wait4(child, 0)
with open(sys.argv[1], "w") as result:
    wall = time.monotonic() - start
    cpu = usage.ru_utime + usage.ru_stime
    result.write(f"{cpu} {wall} {usage.ru_maxrss * 1024}\n")
sys.exit(os.waitstatus_to_exitcode(status))
