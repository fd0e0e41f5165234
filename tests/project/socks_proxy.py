"""A SOCKS 5 proxy on loopback that leads every connection to one place, and remembers what it was asked."""

from __future__ import annotations

import select
import socket
import struct
import threading
from types import TracebackType
from typing import Self


class SocksProxy:
    """Wants a name and a password if the client offers to give them. ``leads_to``: host and port, whatever is asked."""

    def __init__(self) -> None:
        self.leads_to = ("127.0.0.1", 9)
        self.asked: set[tuple[str, int]] = set()
        self.people: set[tuple[str, str]] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        self._begin(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(timeout=10)

    def _begin(self, work: object, *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._begin(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as stream:
            _, offered = stream.read(2)
            methods = stream.read(offered)
            client.sendall(bytes((5, 2 if 2 in methods else 0)))
            if 2 in methods:
                name = stream.read(stream.read(2)[1]).decode()
                self.people.add((name, stream.read(stream.read(1)[0]).decode()))
                client.sendall(b"\x01\x00")
            kind = stream.read(4)[3]
            host = stream.read(stream.read(1)[0]).decode() if kind == 3 else socket.inet_ntoa(stream.read(4))
            (port,) = struct.unpack(">H", stream.read(2))
            self.asked.add((host, port))
            with socket.create_connection(self.leads_to) as target:
                client.sendall(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00")
                _relay(client, target)


def _relay(one: socket.socket, other: socket.socket) -> None:
    ends = {one: other, other: one}
    while True:
        for ready in select.select(list(ends), [], [])[0]:
            data = ready.recv(65536)
            if not data:
                return
            ends[ready].sendall(data)
