# SPDX-License-Identifier: Apache-2.0
"""The way between two peers, which breaks when a scenario says so while both of them live on."""

import socket
import threading


class Link:
    """A listener whose connections lead to another address."""

    def __init__(self, address):
        host, _, port = address.rpartition(":")
        self.target, self.lock, self.sockets = (host, int(port)), threading.Lock(), set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:{}".format(self.listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            here, _ = self.listener.accept()
            try:
                there = socket.create_connection(self.target)
            except OSError:
                here.close()
                continue
            with self.lock:
                self.sockets |= {here, there}
            for pair in ((here, there), (there, here)):
                threading.Thread(target=self._carry, args=pair, daemon=True).start()

    def _carry(self, source, sink):
        try:
            while data := source.recv(1 << 16):
                sink.sendall(data)
        except OSError:
            pass
        self._end((source, sink))

    def _end(self, sockets):
        for one in sockets:
            with self.lock:
                self.sockets.discard(one)
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()

    def cut(self):
        """Ends all connections; new ones are possible at once."""
        with self.lock:
            sockets = list(self.sockets)
        self._end(sockets)
