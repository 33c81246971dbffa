"""tests/environment.py: what a machine lacks is said in a sentence that tells what to do."""
import socket

import pytest

import environment


def test_unknown_localhost_is_named(monkeypatch):
    def unknown(*_):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: [])
    environment.require_localhost()
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(RuntimeError, match="'127.0.0.1 localhost' to /etc/hosts"):
        environment.require_localhost()
