"""The web listener as the job file wants it: where, with which certificate and tokens."""

from __future__ import annotations

import ssl

from samzapy.api.errors import ConfigurationError
from samzapy.config.web_check import is_loopback
from samzapy.config.web_settings import WebSettings
from samzapy.coordinator.host_names import ANY
from samzapy.web.access import May


def context_of(web: WebSettings) -> ssl.SSLContext | None:
    """For https; None: http, which the job file may ask for on loopback and after a proxy only (`config.web_check`).

    Raises:
        ConfigurationError: certificate and key cannot be used.
    """
    if web.tls is None:
        assert is_loopback(web.host) or web.proxy, web.host
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(web.tls.cert, web.tls.key, password=lambda: "")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConfigurationError(
            f"web.tls: {web.tls.cert} and {web.tls.key} cannot be used: {said}.", "Name a certificate and its own private key, both PEM, the key without a password."
        ) from None
    return context


def name_of(web: WebSettings) -> str:
    """The name by which the listener is found: an address that stands for all is none."""
    return web.names[0] if web.names and web.host.strip("[]") in ANY else ""


def fixed_tokens(web: WebSettings) -> dict[May, str]:
    """Those of the job file."""
    given = {May.VIEW: web.tokens.view, May.OPERATE: web.tokens.operate}
    return {may: token for may, token in given.items() if token is not None}
