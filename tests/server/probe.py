"""A program that asks the server for something, and reports what it was told.

    python -I -S probe.py REPORTS SERVER TOKEN METHOD PATH BODY [TRICK]

REPORTS is the path of a socket on which the answer is told. SERVER is a port, or a socket's path;
TOKEN may be "-". A TRICK is a way to hide whose the connection is:

    in flight    while the server looks, nobody holds the connection: it is on its way in a message
    hidden       a thread of its own holds it
    zombie       the same, beside a child that has ended
    headless     the same, after its first thread has ended
    silent       it does not show what it holds
    hand over    the process that has connected ends; its child goes on
    hit and run  it is closed before there is an answer
"""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import socket
import sys
import threading

CLONE_FILES = 0x400
PR_SET_DUMPABLE = 4


def main() -> None:
    _, server, token, method, path, body, *tricks = sys.argv[1:]
    trick = tricks[0] if tricks else ""
    tell(TRICKS[trick](server, _request(token, method, path, body.encode())))


def tell(answer: list[object]) -> None:
    with socket.socket(socket.AF_UNIX) as report:
        report.connect(sys.argv[1])
        report.sendall(json.dumps(answer).encode())


def _request(token: str, method: str, path: str, body: bytes) -> bytes:
    shown = f"Authorization: Bearer {token}\r\n" if token != "-" else ""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{shown}"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body


def _connected(server: str) -> socket.socket:
    if not server.isdigit():
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(server)
        return connection
    connection = socket.socket()
    connection.connect(("127.0.0.1", int(server)))
    return connection


def _named(server: str, request: bytes) -> bytes:
    """Over TCP a server has a name with a port."""
    port = server if server.isdigit() else "1"
    return request.replace(b"Host: localhost", f"Host: localhost:{port}".encode())


def _answer(connection: socket.socket) -> list[object]:
    data = b""
    while piece := connection.recv(65536):
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    return [int(head.split()[1]), body.decode()]


def plainly(server: str, request: bytes) -> list[object]:
    connection = _connected(server)
    connection.sendall(_named(server, request))
    return _answer(connection)


def in_flight(server: str, request: bytes) -> list[object]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    connection = _connected(server)
    connection.sendall(_named(server, request))
    socket.send_fds(ours, [b"x"], [connection.fileno()])
    connection.close()
    # Until the server has looked there is nothing to read; it has, when something is.
    threading.Event().wait(0.3)
    _, [fd], _, _ = socket.recv_fds(theirs, 1, 1)
    return _answer(socket.socket(fileno=fd))


def hidden(server: str, request: bytes) -> list[object]:
    answers: list[list[object]] = []

    def apart() -> None:
        assert ctypes.CDLL(None, use_errno=True).unshare(CLONE_FILES) == 0
        answers.append(plainly(server, request))

    thread = threading.Thread(target=apart)
    thread.start()
    thread.join()
    return answers[0]


def zombie(server: str, request: bytes) -> list[object]:
    ended = os.pipe()
    if os.fork() == 0:
        os._exit(0)
    os.close(ended[1])
    os.read(ended[0], 1)
    return hidden(server, request)


def headless(server: str, request: bytes) -> list[object]:
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()

    def apart() -> None:
        while "Z (zombie)" not in _status(parent):
            os.sched_yield()
        assert libc.unshare(CLONE_FILES) == 0
        tell(plainly(server, request))
        os._exit(0)

    threading.Thread(target=apart).start()
    libc.pthread_exit(None)
    return []


def _status(pid: int) -> str:
    return pathlib.Path(f"/proc/{pid}/status").read_text()


def silent(server: str, request: bytes) -> list[object]:
    assert ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0
    return plainly(server, request)


def hand_over(server: str, request: bytes) -> list[object]:
    connection = _connected(server)
    parent, bell = os.getpid(), os.pipe()
    if os.fork():
        os._exit(0)
    while os.getppid() == parent:
        os.sched_yield()
    os.close(bell[0])
    connection.sendall(_named(server, request))
    return _answer(connection)


def hit_and_run(server: str, request: bytes) -> list[object]:
    connection = _connected(server)
    connection.sendall(_named(server, request))
    connection.close()
    return [0, "it did not wait"]


TRICKS = {
    "": plainly,
    "in flight": in_flight,
    "hidden": hidden,
    "zombie": zombie,
    "headless": headless,
    "silent": silent,
    "hand over": hand_over,
    "hit and run": hit_and_run,
}

if __name__ == "__main__":
    main()
