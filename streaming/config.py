"""The job's settings: one TOML file, overridden by the environment; reports every problem at once.

trimtab-job --config trimtab.toml        TRIMTAB_REDIS_URL=redis://… TRIMTAB_TRIGGER_SECONDS=0.5
"""

from __future__ import annotations

import os
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
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from sinks.errors import Misconfigured
from sinks.green_access import NO_ACCESS, GreenAccess
from sinks.kafka.security import PLAINTEXT, KafkaSecurity
from sinks.redis.server.connections import redis_client
from streaming.config_problems import problem_of, remedy, unreadable
from streaming.environment import NESTED, PREFIX, find_unknown, name_source
from streaming.logs import LogLevel
from streaming.sizing import Size, find_shortage, machine_mib
from trimtab.intake.snapshot import IntakeSettings
from trimtab.settings import Settings
from trimtab.settings.setting import InvalidSettings
from trimtab.shedding import DEFAULTS


class InvalidConfig(ValueError):
    """The job must not start; ``problems`` names each wrong setting and what it should be."""

    def __init__(self, problems: list[str], file: Path | None = None) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
        self.remedy = remedy(problems, file, os.environ)

    def told(self, heading: str = "wrong settings") -> str:
        """All problems, and what to do next."""
        lines = [f"{heading}:", *(f"  {each}" for each in self.problems), f"Next: {self.remedy}"]
        return "\n".join(lines)


class KafkaConfig(BaseModel, extra="forbid", hide_input_in_errors=True):
    """``security`` is for every client. ``options`` override it for Spark's connector, which reads
    intents and ownership; ``client`` for all others (librdkafka), which read reports, too."""

    bootstrap: str = Field(default="127.0.0.1:9092", min_length=1)
    starting_offsets: Literal["earliest", "latest"] = "earliest"
    fetch_wait_ms: int = Field(default=10, ge=0, le=1000)
    max_offsets_per_trigger: int = Field(default=4_000, gt=0)
    """Most reports in a batch. Low: a backlog takes long; high: a batch takes long, and what came
    meanwhile waits for it; it may outgrow memory."""
    security: KafkaSecurity = PLAINTEXT
    given_options: dict[str, str] = Field(default={}, alias="options", repr=False)
    given_client: dict[str, str] = Field(default={}, alias="client", repr=False)

    @property
    def options(self) -> dict[str, str]:
        """Options of Spark's connector. They hold the password: never log them."""
        return self.security.connector() | self.given_options

    @property
    def skips_lost(self) -> bool:
        """Whether records that Kafka has lost are skipped: the connector's ``failOnDataLoss``."""
        return self.given_options.get("failOnDataLoss", "").lower() == "false"

    @property
    def client(self) -> dict[str, str]:
        """Options of librdkafka. They hold the password: never log them."""
        return self.security.librdkafka() | self.given_client


class SparkConfig(BaseModel, extra="forbid"):
    """How the one Spark session is built."""

    master: str = "local[*,4]"
    """4 attempts for each task: plain ``local[*]`` never retries a dead Python worker's task."""
    jars: list[Path] = []
    shuffle_partitions: int = Field(default=2, gt=0)
    """Tasks that read reports, and of each operator. Fixed by the first run of a checkpoint."""
    driver_memory: str | None = None
    """The JVM's heap, as Java writes it. None: what the fleet of `size` needs."""
    conf: dict[str, str] = {}


class JobConfig(BaseSettings):
    """All settings of the job."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter=NESTED, extra="forbid", hide_input_in_errors=True
    )

    kafka: KafkaConfig = KafkaConfig()
    redis_url: SecretStr = SecretStr("redis://127.0.0.1:6379/0")
    """redis:// or rediss:// of a single master, or redis+sentinel:// of the Sentinels that watch it
    (docs/security.md)."""
    green: GreenAccess = NO_ACCESS
    """With what the API and commands ask the other cluster of a migration."""
    redis_replicas: int | None = Field(default=None, ge=0, le=100)
    """Replicas that must acknowledge within 3 s before a lease is renewed or a record is changed.
    None: enough for a majority of the servers together with the master, (replicas + 1) // 2 of its
    replicas. Fewer: a master that was cut off may keep writing next to its successor; more: the
    loss of a replica stops all renewals. 0: none, for a server that is never failed over.
    """
    checkpoint: str = Field(default="build/checkpoint", min_length=1)
    """A path that Spark can write: local, or one that all executors reach."""
    log_level: LogLevel = "info"
    """debug also shows what Spark, its workers and librdkafka say."""
    trigger_seconds: float | None = Field(default=None, ge=0, le=3600)
    """Time between batches, including empty ones. None: what the fleet of `size` needs, 1 s for
    3,000 brokers or fewer and 3 s for 10,000. Short: batches cost more CPU; 0 runs them back to
    back; long: a command, or the repair of a lost lease, comes later."""
    metrics_port: int = Field(default=9780, ge=0, le=65535)
    """Loopback; 0 picks a free one."""
    metrics_host: str = "127.0.0.1"
    standby: bool = False
    """Wait until the active driver is gone, then take over its checkpoint."""
    heartbeat_seconds: float = Field(default=2.0, gt=0, le=60)
    """Time between two heartbeats of the active driver."""
    takeover_seconds: float = Field(default=10.0, gt=0, le=3600)
    """Time without a heartbeat until a standby takes over. Short: it does so at every hiccup of
    Kafka; long: no driver is active meanwhile. Use several heartbeats."""
    watchdog_seconds: float = Field(default=60.0, gt=0, le=3600)
    """Time without progress until the driver exits; ten times as long while Spark computes. Shorter
    than the longest batch: that batch never completes; long: a hung driver balances nothing."""
    yield_seconds: float = Field(default=0.0, ge=0, le=3600)
    """Time without Redis until the driver gives its claim up to a standby, which may reach Redis;
    0: never, for a job without a standby."""
    watch_seconds: float = Field(default=0.25, gt=0, le=60)
    """Time between two checks of the brokers' leases: delays the detection of a lost broker."""
    clock_margin_seconds: float = Field(default=1.0, gt=0, le=60)
    """Jump of Redis's clock within a lease's time that raises doubt: the brokers' allowance."""
    size: Size = Size()
    """The largest fleet that the job is to carry: sets its memory and the time between batches."""
    spark: SparkConfig = SparkConfig()
    intake: dict[str, Any] = {}
    """Settings of operator ①; see IntakeSettings."""
    settings: dict[str, Any] = {}
    """Settings of the round and its strategies, by trimtab's or Pulsar's names."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - pydantic passes it by this name
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the same
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        # The file's content arrives as init arguments; the environment overrides it.
        return env_settings, file_secret_settings, init_settings

    @field_validator("redis_url")
    @classmethod
    def _is_an_address(cls, url: SecretStr) -> SecretStr:
        try:
            redis_client(url.get_secret_value()).close()
        except Misconfigured as error:
            # Its text shows no password, unlike the address.
            raise ValueError(str(error)) from None
        return url

    @field_validator("takeover_seconds")
    @classmethod
    def _outlasts_heartbeats(cls, takeover: float, info: ValidationInfo) -> float:
        heartbeat = info.data.get("heartbeat_seconds", 0.0)
        if takeover < 2 * heartbeat:
            raise ValueError(f"must be at least two heartbeats, {2 * heartbeat:g}")
        return takeover

    def sized_spark(self) -> SparkConfig:
        """Spark's settings with the heap that the fleet needs, unless they name one."""
        heap = self.spark.driver_memory or self.size.heap
        return self.spark.model_copy(update={"driver_memory": heap})

    def sized_trigger(self) -> float:
        """Seconds between batches."""
        return self.size.trigger_s if self.trigger_seconds is None else self.trigger_seconds

    def find_shortage(self) -> str:
        """Why this machine is too small for the fleet, and what to change; empty if it is not, or
        if the settings name a heap: then it is the operator's own decision."""
        return "" if self.spark.driver_memory else find_shortage(self.size, machine_mib())

    def intake_settings(self) -> IntakeSettings:
        """Parse operator ①'s settings; raises InvalidSettings."""
        return IntakeSettings.parse(self.intake)

    def round_settings(self) -> Settings:
        """Parse the core's settings; raises InvalidSettings."""
        return _parse_settings(self.settings)


def load_config(path: Path | None) -> JobConfig:
    """Load the job's settings from a TOML file and the environment; raises InvalidConfig."""
    problems: list[str] = []
    content = {} if path is None else _read(path, problems)
    problems += map(str, (each for each in find_unknown(os.environ, JobConfig) if each.near))
    # Parsed separately, so that one message reports a wrong strategy setting and a wrong address.
    core = {name: _table(content, name, problems) for name in ("intake", "settings")}
    config = None
    try:
        # Setting by setting: one from the environment must not hide the file's other settings.
        environment = EnvSettingsSource(JobConfig)()
        core = {name: given | _branch(environment, name) for name, given in core.items()}
        config = JobConfig(**content)
    except ValidationError as error:
        problems += (problem_of(each, JobConfig) for each in error.errors())
    except SettingsError as error:
        problems.append(unreadable(error))
    for name, parse in (("intake", IntakeSettings.parse), ("settings", _parse_settings)):
        try:
            parse(core[name])
        except InvalidSettings as error:
            problems += [f"{name}.{problem}" for problem in error.problems]
    if problems or config is None:
        raise InvalidConfig([name_source(each, os.environ) for each in problems], path)
    return config.model_copy(update=core)


def _read(path: Path, problems: list[str]) -> dict[str, Any]:
    """The file's content, empty if it cannot be read."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        problems.append(f"{path}: {error.strerror}")
    except UnicodeDecodeError as error:
        problems.append(f"{path}: not UTF-8 from byte {error.start} on: save it as UTF-8")
    except tomllib.TOMLDecodeError as error:
        problems.append(f"{path}: not TOML: {error}")
    return {}


def _table(content: dict[str, Any], name: str, problems: list[str]) -> dict[str, Any]:
    """Remove a table from the file's content and return it flattened."""
    given = content.pop(name, {})
    if isinstance(given, dict):
        return _flat(given)
    problems.append(f"{name}: must be a table, not {given!r}")
    return {}


def _branch(tree: dict[str, Any], name: str) -> dict[str, Any]:
    """A table of the environment's settings, flattened; empty if there is none."""
    given = tree.get(name, {})
    # Anything else than a table is a problem that the model finds.
    return _flat(given) if isinstance(given, dict) else {}


def _parse_settings(tree: dict[str, Any]) -> Settings:
    return DEFAULTS.changed(_flat(tree))


def _flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Turn ``{"avg": {"low_threshold": 15}}`` into ``{"avg.low_threshold": 15}``."""
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat
