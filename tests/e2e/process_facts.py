"""What a session says of the process that runs it."""

import pathlib
import socket


def facts_of(process):
    started = int(pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(") ", 1)[1].split()[19])
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return {"pid": process.pid, "startTicks": started, "bootId": boot, "host": socket.gethostname()}
