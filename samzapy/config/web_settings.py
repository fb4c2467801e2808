"""The section `web` of a job file."""

from __future__ import annotations

from pydantic import Field

from samzapy.config.fields import FilePath, Flag, Host, Hosts, Port, WebToken
from samzapy.config.section import Section


class TlsSettings(Section):
    """The certificate of the web listener, for https."""

    cert: FilePath = Field(
        description="File of the certificate and the certificates that signed it, PEM. The command line trusts it in addition to the system's own."
    )
    key: FilePath = Field(description="File of the certificate's private key, PEM, without a password.")


class TokenSettings(Section):
    """Fixed tokens of the web listener, for scrapers and scripts; each run makes tokens of its own as well."""

    view: WebToken | None = Field(None, description="Allows reading only.", examples=["${file:/run/secrets/view}"])
    operate: WebToken | None = Field(None, description="Allows reading and changes.", examples=["${OPERATE_TOKEN}"])


class WebSettings(Section):
    """The listener that serves the page, status and metrics."""

    port: Port = Field(0, description="The port to listen on; 0: any free port.")
    host: Host = Field("127.0.0.1", description="The address to listen on.")
    names: Hosts = Field(
        (), description="Host names that requests may use, in addition to loopback's and `host`; any other name gets only the health check."
    )
    tls: TlsSettings | None = Field(None, description="Serve https only.")
    proxy: Flag = Field(False, description="Allow a `host` that other machines can reach, without `tls`, because a proxy in front of it encrypts.")
    tokens: TokenSettings = Field(default_factory=lambda: TokenSettings.model_validate({}), description="Fixed tokens.")
    data: Flag = Field(
        True, description="Show keys and values of records on the page and in its HTTP interface; false: topics, dead letters and traces are not shown there."
    )
