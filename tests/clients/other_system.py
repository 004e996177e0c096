"""An agent on a system that lacks what only Linux has, or what only POSIX has: other_system.py SESSION win32|darwin

Python's documentation names the availability of each. Files are opened with an encoding: on Windows the default is no UTF-8.
"""

import builtins
import http.client  # noqa: F401  what the standard library needs of this system, it has taken after these lines
import logging  # noqa: F401
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading  # noqa: F401
import time

import pytest  # noqa: F401

session, platform = sys.argv[1:]
LINUX = {
    os: "eventfd getrandom memfd_create O_PATH O_TMPFILE pidfd_open posix_fadvise posix_fallocate sched_getaffinity sched_setaffinity setns unshare "
        "sched_setscheduler getxattr listxattr setxattr copy_file_range splice getresuid setresuid fdatasync",
    signal: "SIGRTMIN SIGRTMAX SIGPOLL SIGPWR SIGSTKFLT pidfd_send_signal sigtimedwait sigwaitinfo",
    socket: "AF_NETLINK AF_VSOCK AF_PACKET SOCK_CLOEXEC SOCK_NONBLOCK SO_PEERCRED MSG_NOSIGNAL TCP_USER_TIMEOUT SO_BINDTODEVICE",
    time: "CLOCK_BOOTTIME CLOCK_TAI",
}
POSIX = {
    os: "fork forkpty register_at_fork uname getuid geteuid getgid getegid getgroups getlogin getpgid getpgrp getpriority getsid getloadavg killpg nice openpty "
        "initgroups mkfifo mknod chown chroot fchmod fchown fchdir lchown statvfs fstatvfs sendfile pread pwrite preadv pwritev readv writev lockf pipe2 "
        "posix_spawn posix_spawnp setsid setpgid setpriority setuid setgid seteuid setegid sync sysconf confstr pathconf fpathconf ctermid ttyname tcgetpgrp "
        "tcsetpgrp wait wait3 wait4 waitid WIFEXITED WIFSIGNALED WEXITSTATUS WTERMSIG environb fsync_range major minor makedev O_CLOEXEC O_NONBLOCK O_DIRECTORY "
        "O_NOFOLLOW O_NOCTTY O_SYNC O_DSYNC WNOHANG EX_OK get_blocking set_blocking",
    signal: "SIGKILL SIGHUP SIGUSR1 SIGUSR2 SIGCHLD SIGPIPE SIGALRM SIGQUIT SIGSTOP SIGCONT SIGTSTP SIGWINCH alarm setitimer getitimer pause pthread_kill "
            "pthread_sigmask sigpending sigwait siginterrupt SIG_BLOCK",
    socket: "AF_UNIX SO_REUSEPORT MSG_DONTWAIT sethostname if_nameindex CMSG_LEN send_fds recv_fds",
    time: "clock_gettime clock_gettime_ns clock_settime CLOCK_REALTIME CLOCK_MONOTONIC pthread_getcpuclockid tzset",
}
MODULES = "fcntl pwd grp spwd crypt resource termios tty pty posix syslog readline nis".split()
for names in [LINUX] + ([POSIX] if platform == "win32" else []):
    for module, words in names.items():
        for name in words.split():
            if hasattr(module, name):
                delattr(module, name)
sys.platform = platform
if platform == "win32":
    for name in MODULES:
        sys.modules[name] = None  # importing it is an ImportError
opened = builtins.open


def open_of_there(file, *how, **more):
    if str(file).startswith(("/proc", "/sys", "/dev")):
        raise FileNotFoundError(2, "there is no such file on this system", str(file))
    return opened(file, *how, **more)


builtins.open = open_of_there
clients = pathlib.Path(__file__).resolve().parents[2] / "clients/python"
sys.path.insert(0, str(clients))
sys.dont_write_bytecode = True

import pytest_watchdog  # noqa: E402
import watchdog_client  # noqa: E402

monitor = watchdog_client.Monitor()
with watchdog_client.Reporter(session, agent="agent", task="a task — in UTF-8") as reporter:
    reporter.heartbeat(1, "work")
    with reporter.tool("search", {"query": "ü"}) as call:
        call.result = "found"
    reporter.state_change("step")
    assert not reporter.cancelled
assert monitor.wait(session)["outcome"]["kind"] == "completed"
assert [event["kind"] for event in monitor.events(session)] == ["start", "heartbeat", "tool_call", "tool_result", "state_change", "end"]
start = next(iter(monitor.events(session, "start")))
# The monitor finds by itself which process holds the connection.
assert (start["pid"], start["known_by"]) == (os.getpid(), "connection"), start

# The end of a process ends a wait for its session.
with subprocess.Popen([sys.executable, "-c", ""]) as process:
    try:
        monitor.wait(session + "-never", process=process)
        raise AssertionError("a wait for a process that is gone has succeeded")
    except watchdog_client.WaitFailed as failed:
        assert failed.end == "gone" or "exited with 0" in str(failed), failed

fixture = pytest_watchdog.WatchdogFixture("a test")
with fixture.reporter() as reporter:
    reporter.state_change("step")
fixture.wait()
fixture.close()
print("ok")
