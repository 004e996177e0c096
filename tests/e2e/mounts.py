"""Mounts that only this process and its children see, and that vanish with it."""

import ctypes
import os

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH = 0x1000, 0x4000, 0x40000, 2


def own_mounts(as_root=False):
    """From now on, mounts of this process are its own. Needs to come before the first thread. Gives why not, or an empty string.

    Programs that it starts may mount too with `as_root`: then it and they are root, as far as they see.
    """
    uid, gid = os.getuid(), os.getgid()
    if LIBC.unshare(CLONE_NEWNS | (CLONE_NEWUSER if uid else 0)):
        return os.strerror(ctypes.get_errno())
    if uid:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{0 if as_root else uid} {uid} 1"),
                           ("gid_map", f"{0 if as_root else gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    mount("none", "/", None, MS_REC | MS_PRIVATE, None)
    return ""


def mount(*of_what):
    source, target, kind, flags, options = (one.encode() if isinstance(one, str) else one for one in of_what)
    if LIBC.mount(source, target, kind, flags, options):
        raise OSError(ctypes.get_errno(), f"cannot mount on {target}")


def unmount(place):
    LIBC.umount2(place.encode(), MNT_DETACH)
