"""The section `web` of a job file."""

from __future__ import annotations

from pydantic import Field

from samzapy.config.fields import FilePath, Flag, Host, Hosts, Port, WebToken
from samzapy.config.section import Section


class TlsSettings(Section):
    """The certificate that the web listener shows, for https."""

    cert: FilePath = Field(description="The certificate with those that signed it, PEM. The command line trusts it beside the system's own.")
    key: FilePath = Field(description="Its private key, PEM, without a password.")


class TokenSettings(Section):
    """Fixed tokens of the web listener, beside those that each run makes: for scrapers and scripts."""

    view: WebToken | None = Field(None, description="May look.", examples=["${file:/run/secrets/view}"])
    operate: WebToken | None = Field(None, description="May look and act.", examples=["${OPERATE_TOKEN}"])


class WebSettings(Section):
    """The listener for people: status and metrics."""

    port: Port = Field(0, description="0: any free port.")
    host: Host = Field("127.0.0.1", description="The address to listen on.")
    names: Hosts = Field(
        (), description="Host names that requests may use, in addition to loopback's and `host`; any other name gets only the health check."
    )
    tls: TlsSettings | None = Field(None, description="Serve https, and nothing else.")
    proxy: Flag = Field(False, description="`host` may be reached from other machines without `tls`, because something in front of it encrypts.")
    tokens: TokenSettings = Field(default_factory=lambda: TokenSettings.model_validate({}), description="Fixed tokens.")
    data: Flag = Field(
        True, description="Show keys and values of records on the page and by its interface; false: nobody sees topics, dead letters and traces there."
    )
