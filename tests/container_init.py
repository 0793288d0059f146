"""Becomes a container's process. Run as a script in new namespaces, with a JSON object as its only argument.

``root`` is the image's folder. ``mounts`` are the arguments of each call of ``mount``. ``wants_loopback`` is whether
the network namespace is new. ``user`` is a user id and a group id, joined by a colon. ``folder``, ``environment`` and
``command`` are those of the process in the container.
"""

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
from typing import Any

_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1


def main(job: dict[str, Any]) -> None:
    for mount in job["mounts"]:
        subprocess.run(["mount", *mount], check=True)
    if job["wants_loopback"]:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))
    user, group = (int(number) for number in job["user"].split(":"))
    os.chroot(job["root"])
    os.chdir(job["folder"])
    os.umask(0o022)
    os.setgroups([])
    os.setgid(group)
    os.setuid(user)
    os.execvpe(job["command"][0], job["command"], job["environment"])  # noqa: S606 - the recipe's own command


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
