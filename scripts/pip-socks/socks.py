"""What pip needs to go through a SOCKS 5 proxy, under the module name by which it asks for it.

pip brings no SOCKS support of its own, and behind a SOCKS proxy it cannot be installed without it. This folder
is put on pip's path while it installs; envforge never imports it. The protocol is RFC 1928, with names and
passwords of RFC 1929.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable

PROXY_TYPE_SOCKS4 = 1
PROXY_TYPE_SOCKS5 = 2

_NO_PASSWORD, _PASSWORD = 0, 2
_CONNECT = 1
_IPV4, _NAME, _IPV6 = 1, 3, 4
_REFUSALS = {
    1: "general failure",
    2: "not allowed by its rules",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "time to live expired",
    7: "command not supported",
    8: "address type not supported",
}


class ProxyError(OSError):
    """``socket_err`` is the error of the socket underneath, where that is the cause."""

    def __init__(self, message: str, socket_err: OSError | None = None) -> None:
        super().__init__(message)
        self.socket_err = socket_err


def create_connection(
    dest_pair: tuple[str, int],
    *,
    proxy_type: int,
    proxy_addr: str,
    proxy_port: int | None,
    proxy_username: str | None = None,
    proxy_password: str | None = None,
    proxy_rdns: bool = True,
    timeout: float | None = None,
    source_address: tuple[str, int] | None = None,
    socket_options: Iterable[tuple[int, int, int]] = (),
) -> socket.socket:
    """A socket connected to ``dest_pair`` through the proxy; ``timeout`` is in seconds.

    ``proxy_rdns``: the proxy looks the name up, not this machine. Raises ProxyError.
    """
    if proxy_type != PROXY_TYPE_SOCKS5:
        message = "only SOCKS 5 is supported here: write `socks5h://` in place of `socks4://`"
        raise ProxyError(message)
    try:
        # pip's `timeout` may be an object that says "the default"
        limit = timeout if isinstance(timeout, (int, float)) else None
        connection = socket.create_connection((proxy_addr, proxy_port or 1080), limit, source_address)
    except OSError as error:
        message = f"cannot reach the SOCKS proxy {proxy_addr}:{proxy_port or 1080}: {error}"
        raise ProxyError(message, error) from error
    try:
        for option in socket_options:
            connection.setsockopt(*option)
        _authenticate(connection, proxy_username, proxy_password)
        _connect(connection, dest_pair, by_name=proxy_rdns)
    except ProxyError:
        connection.close()
        raise
    except OSError as error:
        connection.close()
        message = f"the SOCKS proxy broke off: {error}"
        raise ProxyError(message, error) from error
    return connection


def _authenticate(connection: socket.socket, user: str | None, password: str | None) -> None:
    offered = bytes((_NO_PASSWORD, _PASSWORD)) if user else bytes((_NO_PASSWORD,))
    connection.sendall(bytes((5, len(offered))) + offered)
    version, method = _receive(connection, 2)
    if version != 5:
        message = "the proxy does not speak SOCKS 5"
        raise ProxyError(message)
    if method == _PASSWORD and user:
        name, word = user.encode(), (password or "").encode()
        connection.sendall(bytes((1, len(name))) + name + bytes((len(word),)) + word)
        if _receive(connection, 2)[1] != 0:
            message = "the SOCKS proxy refused the name and password"
            raise ProxyError(message)
    elif method != _NO_PASSWORD:
        message = "the SOCKS proxy wants a name and a password: socks5h://NAME:PASSWORD@HOST:PORT"
        raise ProxyError(message)


def _connect(connection: socket.socket, destination: tuple[str, int], *, by_name: bool) -> None:
    host, port = destination
    connection.sendall(bytes((5, _CONNECT, 0)) + _address(host, port, by_name=by_name) + struct.pack(">H", port))
    _, refusal, _, kind = _receive(connection, 4)
    if refusal:
        message = f"the SOCKS proxy cannot connect to {host}:{port}: {_REFUSALS.get(refusal, refusal)}"
        raise ProxyError(message)
    # the address that the proxy bound is of no use to anybody, but has to be read
    length = {_IPV4: 4, _IPV6: 16}.get(kind) or _receive(connection, 1)[0]
    _receive(connection, length + 2)


def _address(host: str, port: int, *, by_name: bool) -> bytes:
    for family, kind in ((socket.AF_INET, _IPV4), (socket.AF_INET6, _IPV6)):
        try:
            return bytes((kind,)) + socket.inet_pton(family, host.strip("[]"))
        except OSError:
            continue
    if by_name:
        name = host.encode("idna")
        return bytes((_NAME, len(name))) + name
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    kind = _IPV6 if family == socket.AF_INET6 else _IPV4
    return bytes((kind,)) + socket.inet_pton(family, str(address[0]))


def _receive(connection: socket.socket, length: int) -> bytes:
    received = b""
    while len(received) < length:
        part = connection.recv(length - len(received))
        if not part:
            message = "the SOCKS proxy closed the connection"
            raise ProxyError(message)
        received += part
    return received
