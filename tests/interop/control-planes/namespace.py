# SPDX-License-Identifier: Apache-2.0
"""A program of its own: runs a command in a network namespace with nothing but a loopback interface.

    namespace.py [--door SOCKET=PORT]... [--occupied PORT]... -- COMMAND...

A door is a Unix socket whose connections are forwarded to a port of that loopback interface. An occupied port is one
on which another program listens. The command ends with this program, and this program with the command.
"""

import ctypes
import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
import threading

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


def enter():
    """Moves this process into a namespace of its own and brings the loopback interface up; raises OSError without the
    right to do so."""
    flags = CLONE_NEWNET if os.geteuid() == 0 else CLONE_NEWNET | CLONE_NEWUSER
    if LIBC.unshare(flags):
        number = ctypes.get_errno()
        raise OSError(number, f"no network namespace: {os.strerror(number)}")
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))


def door(path, port):
    """Forwards connections to the socket at that path to that port, without end."""
    listening = socket.socket(socket.AF_UNIX)
    if os.path.exists(path):
        os.unlink(path)
    listening.bind(path)
    listening.listen(256)

    def let_in():
        while True:
            outside, _ = listening.accept()
            try:
                inside = socket.create_connection(("127.0.0.1", port), 5)
                inside.settimeout(None)
                inside.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # As programs with gRPC do.
            except OSError:
                outside.close()
                continue
            for source, target in ((outside, inside), (inside, outside)):
                threading.Thread(target=carry, args=(source, target), daemon=True).start()

    threading.Thread(target=let_in, daemon=True).start()


def carry(source, target):
    """Copies bytes between both until one of them ends, and then closes both."""
    try:
        while some := source.recv(1 << 16):
            target.sendall(some)
    except OSError:
        pass
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def main():
    options, command = sys.argv[1:], []
    if "--" in options:
        at = options.index("--")
        options, command = options[:at], options[at + 1:]
    enter()
    held = []
    while options:
        option, value, *options = options
        if option == "--door":
            path, _, port = value.rpartition("=")
            door(path, int(port))
        elif option == "--occupied":
            held.append(socket.create_server(("", int(value))))
        else:
            sys.exit(f"namespace.py: no option {option}")
    child = subprocess.Popen(command or ["true"], preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    sys.exit(child.wait())


if __name__ == "__main__":
    main()
