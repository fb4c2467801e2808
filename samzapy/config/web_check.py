"""Whether others than this machine could listen in on what the web listener answers."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from samzapy.config.key_errors import Finding
from samzapy.config.parts import map_at
from samzapy.config.plain_scalars import read_scalar


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a listener there."""
    bare = host.strip().removeprefix("[").removesuffix("]")
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return bare.lower() == "localhost"


def check_web(document: Mapping[str, Any]) -> Iterator[Finding]:
    """`web.host` beyond loopback without anything that encrypts."""
    web = map_at(document, "web")
    host, proxy = web.get("host"), web.get("proxy")
    encrypts = read_scalar(proxy) if isinstance(proxy, str) else proxy  # a text: out of the environment
    if isinstance(host, str) and not is_loopback(host) and web.get("tls") is None and not encrypts:
        yield Finding(
            ("web", "host"),
            f"{host} answers other machines, and without TLS others on the network can read the tokens and what the page shows",
            "Write web: {tls: {cert: FILE, key: FILE}}; or web: {proxy: true} if a proxy in front of it encrypts; or leave web.host at 127.0.0.1.",
        )
