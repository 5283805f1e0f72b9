"""Kafka TLS and SASL settings, written once and translated for each client library."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, Self

from pydantic import BaseModel, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings

from sinks.environment import misconfigured
from sinks.tls_files import check_ca, check_pair

NEXT_STEP: Final = (
    "check protocol, mechanism, username, password, ca and certificate under kafka.security, "
    "and that the address is one that the server's certificate names"
)
"""What to do when Kafka refuses a client."""

_LIBRDKAFKA: Final = {
    "security.protocol": "protocol",
    "sasl.mechanism": "mechanism",
    "sasl.username": "username",
    "sasl.password": "password",
    "ssl.ca.location": "ca",
    "ssl.certificate.location": "certificate",
    "ssl.key.location": "certificate",
}

_KAFKA_PYTHON: Final = {
    "security_protocol": "protocol",
    "sasl_mechanism": "mechanism",
    "sasl_plain_username": "username",
    "sasl_plain_password": "password",
    "ssl_cafile": "ca",
    "ssl_certfile": "certificate",
    "ssl_keyfile": "certificate",
}

_CONNECTOR: Final = {
    "kafka.security.protocol": "protocol",
    "kafka.sasl.mechanism": "mechanism",
    "kafka.sasl.jaas.config": "login",
    "kafka.ssl.truststore.location": "ca",
    "kafka.ssl.truststore.type": "ca_type",
    "kafka.ssl.keystore.location": "certificate",
    "kafka.ssl.keystore.type": "certificate_type",
}

_LOGIN_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


class KafkaSecurity(BaseModel, extra="forbid", frozen=True, hide_input_in_errors=True):
    """Plaintext by default. TLS always checks the server's certificate and its name."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512"
    username: str = ""
    password: SecretStr = SecretStr("")
    ca: Path | None = None
    """PEM; the default is the authorities that the system trusts."""
    certificate: Path | None = None
    """PEM: this client's private key (PKCS#8, not encrypted) and its certificates, in one file."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        """Reject an incomplete login or an unused file: mistakes that no server would explain."""
        sasl = self.protocol.startswith("SASL")
        if (bool(self.username), bool(self.password.get_secret_value())) != (sasl, sasl):
            raise ValueError(
                "username and password belong to SASL_PLAINTEXT and SASL_SSL, both of them; "
                f"the protocol is {self.protocol}"
            )
        if (self.ca or self.certificate) and not self.protocol.endswith("SSL"):
            raise ValueError(
                f"ca and certificate belong to SSL and SASL_SSL; the protocol is {self.protocol}"
            )
        if self.ca:
            check_ca("ca", self.ca)
        if self.certificate:
            check_pair("certificate", self.certificate, self.certificate)
        return self

    def librdkafka(self) -> dict[str, str]:
        """Settings of a confluent-kafka client. They hold the password: never log them."""
        return self._named(_LIBRDKAFKA)

    def kafka_python(self) -> dict[str, str]:
        """Arguments of a kafka-python client. They hold the password: never log them."""
        return self._named(_KAFKA_PYTHON)

    def connector(self) -> dict[str, str]:
        """Options of Spark's Kafka connector. They hold the password: never log them."""
        return self._named(_CONNECTOR)

    def _named(self, names: Mapping[str, str]) -> dict[str, str]:
        values = self._values()
        return {name: values[what] for name, what in names.items() if what in values}

    def _values(self) -> dict[str, str]:
        """The settings that are set, keyed by the values of the tables."""
        values: dict[str, str] = {"protocol": self.protocol}
        if self.username:
            password = self.password.get_secret_value()
            values |= {
                "mechanism": self.mechanism,
                "username": self.username,
                "password": password,
                "login": f"{_LOGIN_MODULES[self.mechanism]} required "
                f"username={_quoted(self.username)} password={_quoted(password)};",
            }
        if self.ca:
            values |= {"ca": str(self.ca), "ca_type": "PEM"}
        if self.certificate:
            values |= {"certificate": str(self.certificate), "certificate_type": "PEM"}
        return values


PLAINTEXT: Final = KafkaSecurity()


class _Environment(
    BaseSettings,
    env_prefix="TRIMTAB_KAFKA__",
    env_nested_delimiter="__",
    hide_input_in_errors=True,
):
    security: KafkaSecurity = PLAINTEXT


def security_of_environment() -> KafkaSecurity:
    """Read TRIMTAB_KAFKA__SECURITY__PROTOCOL and so on, as the job does; raises Misconfigured."""
    try:
        return _Environment().security
    except ValidationError as error:
        raise misconfigured("kafka.security", error) from None


def _quoted(text: str) -> str:
    """Quote a string for a JAAS configuration."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
