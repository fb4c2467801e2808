"""A local Kafka with TLS, passwords and ACLs: certificates, users, and the settings of brokers and clients that belong to them.

Everything is made once, in the folder `secure` of the cluster's directory, which only its user can enter. The certificate authority signs
the brokers' one certificate, whose names are loopback's, and its key is then deleted: nobody can sign another. Java's own keytool does it,
run by its class, since a small Java may lack the command. Brokers and controllers speak TLS only, and know each other by the user `broker`
(PLAIN, in the brokers' settings); people and jobs have SCRAM users, which are in Kafka. `admin` may do everything, `samzapy` nothing until
ACLs allow it. A password is in files of mode 0600 only, never in an argument of a process.
"""

from __future__ import annotations

import secrets
import shutil
import ssl
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from samzapy.api.errors import ClusterUnreachable
from samzapy.dev.java import Java
from samzapy.dev.places import write_private
from samzapy.dev.probe import Login
from samzapy.dev.settings import BRIEF_JVM_OPTIONS

BROKER, ADMIN, JOB = "broker", "admin", "samzapy"
MECHANISM = "SCRAM-SHA-512"
LISTENER = "SECURE"
LOOPBACK_NAMES = "ip:127.0.0.1,dns:localhost"
VALID_DAYS = 3650
_KEYTOOL = ("-m", "java.base/sun.security.tools.keytool.Main")
_KEYTOOL_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Secure:
    """The files of a secured cluster. `folder` has mode 0700."""

    folder: Path

    @property
    def ca(self) -> Path:
        """The authority's certificate, PEM; not a secret."""
        return self.folder / "ca.pem"

    @property
    def keystore(self) -> Path:
        return self.folder / "broker.p12"

    @property
    def admin_properties(self) -> Path:
        """For Kafka's own tools: `--command-config`."""
        return self.folder / "admin.properties"

    def password_file(self, user: str) -> Path:
        return self.folder / f"{user}.password"

    def password(self, user: str) -> str:
        return self.password_file(user).read_text()

    # -- made once ----------------------------------------------------------------------------------------------------------------------

    def make(self, java: Java) -> None:
        """Certificates and passwords, where they are not there yet.

        Raises:
            ClusterUnreachable: Java's keytool failed.
        """
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.folder.chmod(0o700)
        for name in (BROKER, ADMIN, JOB, "store"):
            if not self.password_file(name).exists():
                write_private(self.password_file(name), secrets.token_urlsafe(24))
        if not (self.ca.exists() and self.keystore.exists()):
            self._make_certificates(java)
        write_private(self.admin_properties, self._admin_properties())

    def _make_certificates(self, java: Java) -> None:
        draft = self.folder / "draft"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        store = KeyStore(java, draft / "broker.p12", self.password_file("store"))
        store.make_authority("samzapy dev kafka")
        store.make_certificate("broker", LOOPBACK_NAMES)
        store.export_authority(draft / "ca.pem")
        store.forget_authority()
        store.path.chmod(0o600)
        store.path.replace(self.keystore)
        (draft / "ca.pem").replace(self.ca)
        shutil.rmtree(draft)

    def _admin_properties(self) -> str:
        user = f'username="{ADMIN}" password="{self.password(ADMIN)}"'
        return (
            f"security.protocol=SASL_SSL\nsasl.mechanism={MECHANISM}\n"
            f"sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required {user};\n"
            f"ssl.truststore.type=PEM\nssl.truststore.location={self.ca}\n"
        )

    # -- settings -----------------------------------------------------------------------------------------------------------------------

    def broker_settings(self) -> dict[str, str]:
        """What a broker needs besides its listeners. Holds passwords."""
        password = self.password(BROKER)
        plain = (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'username="{BROKER}" password="{password}" user_{BROKER}="{password}";'
        )
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        store = self.password("store")
        return {
            "inter.broker.listener.name": LISTENER,
            "listener.security.protocol.map": f"{LISTENER}:SASL_SSL,CONTROLLER:SASL_SSL",
            "sasl.enabled.mechanisms": f"{MECHANISM},PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            f"listener.name.{LISTENER.lower()}.plain.sasl.jaas.config": plain,
            f"listener.name.{LISTENER.lower()}.{MECHANISM.lower()}.sasl.jaas.config": scram,
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.controller.plain.sasl.jaas.config": plain,
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(self.keystore),
            "ssl.keystore.password": store,
            "ssl.key.password": store,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{BROKER};User:{ADMIN}",
            "allow.everyone.if.no.acl.found": "false",
        }

    def client_settings(self, user: str, bootstrap_servers: str) -> dict[str, str]:
        """librdkafka's settings for a user of this cluster. Holds the password."""
        plain = user == BROKER
        return {
            "bootstrap.servers": bootstrap_servers,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.ca),
            "sasl.mechanism": "PLAIN" if plain else MECHANISM,
            "sasl.username": user,
            "sasl.password": self.password(user),
        }

    def job_file_lines(self, bootstrap_servers: str) -> str:
        """The `kafka` section for a job file: paths in place of the password."""
        shown: Mapping[str, str] = self.client_settings(JOB, bootstrap_servers) | {"sasl.password": f"${{file:{self.password_file(JOB)}}}"}
        return "kafka:\n" + "".join(f'  {key}: "{value}"\n' for key, value in shown.items())

    def login(self) -> Login:
        """For a connection of our own."""
        return Login(ssl.create_default_context(cafile=str(self.ca)), BROKER, self.password(BROKER))


@dataclass(frozen=True)
class KeyStore:
    """A PKCS12 file that Java's keytool works on; its password is in a file."""

    java: Java
    path: Path
    password_file: Path

    def make_authority(self, name: str) -> None:
        self._run("-genkeypair", "-alias", "authority", "-dname", f"CN={name} authority", "-ext", "bc:c=ca:true,pathlen:0", *_KEY)

    def make_certificate(self, alias: str, names: str, *more: str) -> None:
        """A key with a certificate of the authority's. `names`: as keytool takes them for SAN; `more`: options of keytool's."""
        self._run("-genkeypair", "-alias", alias, "-signer", "authority", "-dname", f"CN={alias}", "-ext", f"san={names}", *_KEY, *more)

    def export_authority(self, pem: Path) -> None:
        self._run("-exportcert", "-rfc", "-alias", "authority", "-file", str(pem))

    def forget_authority(self) -> None:
        """Delete its key; certificates keep their chain."""
        self._run("-delete", "-alias", "authority")

    def _run(self, verb: str, *options: str) -> None:
        store = ("-keystore", str(self.path), "-storetype", "PKCS12", "-storepass:file", str(self.password_file))
        said = subprocess.run(
            [str(self.java.executable), *BRIEF_JVM_OPTIONS, *_KEYTOOL, verb, *store, *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=_KEYTOOL_TIMEOUT_S, check=False,
        )  # fmt: skip
        if said.returncode != 0:
            first = next((line.strip() for line in said.stdout.splitlines() if line.strip()), "it said nothing")
            raise ClusterUnreachable(
                f"the certificates could not be made: keytool: {first}.", f"Check that {self.java.home} is a complete Java installation."
            )


_KEY = ("-keyalg", "EC", "-groupname", "secp256r1", "-validity", str(VALID_DAYS))
