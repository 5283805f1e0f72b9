"""The job's settings: one TOML file, the environment over it, every problem at once.

trimtab-job --config trimtab.toml        TRIMTAB_REDIS_URL=redis://… TRIMTAB_TRIGGER_SECONDS=0.5
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    BaseModel,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from sinks.kafka.security import PLAINTEXT, KafkaSecurity
from trimtab.intake.snapshot import IntakeSettings
from trimtab.settings import Settings
from trimtab.settings.setting import InvalidSettings
from trimtab.shedding import DEFAULTS


class InvalidConfig(ValueError):
    """The job must not start; ``problems`` names each wrong setting and what it should be."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class KafkaConfig(BaseModel, extra="forbid", hide_input_in_errors=True):
    """``security`` holds for every client. ``options`` go over it for Spark's connector, ``client``
    for the driver's other clients (librdkafka)."""

    bootstrap: str = "127.0.0.1:9092"
    starting_offsets: Literal["earliest", "latest"] = "earliest"
    fetch_wait_ms: int = Field(default=10, ge=0, le=1000)
    max_offsets_per_trigger: int = Field(default=20_000, gt=0)
    """Reports a batch at most. Few: a backlog takes long; many: the batch outgrows memory."""
    security: KafkaSecurity = PLAINTEXT
    given_options: dict[str, str] = Field(default={}, alias="options", repr=False)
    given_client: dict[str, str] = Field(default={}, alias="client", repr=False)

    @property
    def options(self) -> dict[str, str]:
        """Of Spark's connector. Carries the password: never log it."""
        return self.security.connector() | self.given_options

    @property
    def client(self) -> dict[str, str]:
        """Of librdkafka. Carries the password: never log it."""
        return self.security.librdkafka() | self.given_client


class SparkConfig(BaseModel, extra="forbid"):
    """How the one Spark session is built."""

    master: str = "local[*,4]"
    """With 4 attempts a task: plain ``local[*]`` gives a dead Python worker no second chance."""
    jars: list[Path] = []
    shuffle_partitions: int = Field(default=2, gt=0)
    """Fixed by the first run of a checkpoint."""
    driver_memory: str = "1g"
    conf: dict[str, str] = {}


class JobConfig(BaseSettings):
    """Everything the job is told from outside."""

    model_config = SettingsConfigDict(
        env_prefix="TRIMTAB_", env_nested_delimiter="__", extra="forbid", hide_input_in_errors=True
    )

    kafka: KafkaConfig = KafkaConfig()
    redis_url: SecretStr = SecretStr("redis://127.0.0.1:6379/0")
    """redis:// or rediss:// of a single master, or redis+sentinel:// of the Sentinels that watch it
    (docs/security.md)."""
    redis_replicas: int | None = Field(default=None, ge=0, le=100)
    """Replicas that must have acknowledged within 3 s before a lease is renewed or a record is
    changed. None: so many that they are a majority of the servers with the master, (replicas + 1)
    // 2 of those that follow it. Fewer: a master that was cut off may go on beside its successor;
    more: the loss of a replica stops all renewals. 0: none, for a server that is never failed over.
    """
    checkpoint: str = "build/checkpoint"
    """A path Spark can write: local, or one all executors reach."""
    trigger_seconds: float = Field(default=1.0, ge=0, le=3600)
    """Between batches, empty ones too; 0 runs them back to back."""
    metrics_port: int = Field(default=9780, ge=0, le=65535)
    """Loopback; 0 picks a free one."""
    metrics_host: str = "127.0.0.1"
    standby: bool = False
    """Wait until the job that acts is gone, then take over its checkpoint."""
    heartbeat_seconds: float = Field(default=2.0, gt=0, le=60)
    """Between two signs of life of the job that acts."""
    takeover_seconds: float = Field(default=10.0, gt=0, le=3600)
    """Without a sign of life until a standby takes over. Short: it does so at every hiccup of
    Kafka; long: nobody acts meanwhile. Several heartbeats."""
    watchdog_seconds: float = Field(default=60.0, gt=0, le=3600)
    """Without progress until the driver ends itself. Shorter than the longest batch: it never gets
    through that one; long: a hung driver balances nothing."""
    yield_seconds: float = Field(default=0.0, ge=0, le=3600)
    """Without Redis until the driver leaves the claim to a standby, which may reach it; 0: never,
    for where there is none."""
    watch_seconds: float = Field(default=0.25, gt=0, le=60)
    """Between two looks at the brokers' leases: what a broker's loss costs beyond its lease."""
    clock_margin_seconds: float = Field(default=1.0, gt=0, le=60)
    """Jump of Redis's clock within a lease's time that raises doubt: what brokers allow for."""
    spark: SparkConfig = SparkConfig()
    intake: dict[str, Any] = {}
    """Of operator ①; see IntakeSettings."""
    settings: dict[str, Any] = {}
    """Of the round and its strategies, by trimtab's or Pulsar's names."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - pydantic passes it by this name
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the same
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        # The file's content comes as init arguments; the environment goes over it.
        return env_settings, file_secret_settings, init_settings

    @field_validator("takeover_seconds")
    @classmethod
    def _outlasts_heartbeats(cls, takeover: float, info: ValidationInfo) -> float:
        heartbeat = info.data.get("heartbeat_seconds", 0.0)
        if takeover < 2 * heartbeat:
            raise ValueError(f"must be at least two heartbeats, {2 * heartbeat:g}")
        return takeover

    def intake_settings(self) -> IntakeSettings:
        """Operator ①'s settings; raises InvalidSettings."""
        return IntakeSettings.parse(self.intake)

    def round_settings(self) -> Settings:
        """The core's settings; raises InvalidSettings."""
        return _parse_settings(self.settings)


def load_config(path: Path | None) -> JobConfig:
    """The job's settings from a TOML file and the environment; raises InvalidConfig."""
    problems: list[str] = []
    content: dict[str, Any] = {}
    if path is not None:
        try:
            content = tomllib.loads(path.read_text())
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InvalidConfig([f"{path}: {error}"]) from error
    # Read apart, so that a wrong strategy setting and a wrong address are told in one message.
    core = {name: _table(content, name, problems) for name in ("intake", "settings")}
    config = None
    try:
        config = JobConfig(**content)
        # By single setting: one in the environment must not hide the file's others beside it.
        core = {name: given | _flat(getattr(config, name)) for name, given in core.items()}
    except ValidationError as error:
        problems += [f"{_name(e['loc'])}: {e['msg']}" for e in error.errors()]
    for name, parse in (("intake", IntakeSettings.parse), ("settings", _parse_settings)):
        try:
            parse(core[name])
        except InvalidSettings as error:
            problems += [f"{name}.{problem}" for problem in error.problems]
    if problems or config is None:
        raise InvalidConfig(problems)
    return config.model_copy(update=core)


def _table(content: dict[str, Any], name: str, problems: list[str]) -> dict[str, Any]:
    """Take a table out of the file's content, flat."""
    given = content.pop(name, {})
    if isinstance(given, dict):
        return _flat(given)
    problems.append(f"{name}: must be a table, not {given!r}")
    return {}


def _parse_settings(tree: dict[str, Any]) -> Settings:
    return DEFAULTS.changed(_flat(tree))


def _name(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location)


def _flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """``{"avg": {"low_threshold": 15}}`` as ``{"avg.low_threshold": 15}``."""
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat
