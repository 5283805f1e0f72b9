"""Every name that deploy/ uses exists in the code: commands, options, variables, ports, paths."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy import jars
from deploy.chart import CHART
from deploy.manifests import kafka_topic
from deploy.redis_acl import Role, user_name
from deploy.redis_checks import _FSYNC, _TOLD
from sinks.kafka.topic_rules import IN_SYNC, RETENTION, UNCLEAN, Found, Topic, judge
from sinks.kafka.topics import TOPICS
from streaming.config import JobConfig, load_config
from streaming.environment import PREFIX, find_unknown, variables_of
from streaming.sizing import Size
from tests.support.deployed import (
    ROOT,
    VALUES,
    command_lines,
    compose,
    containers,
    documents,
    options_of,
)
from trimtab.model import parse_subject

METRICS, API = 9780, 9781
"""Ports that the job and the API have by default."""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> JobConfig:
    """The settings of the chart's ConfigMap, as the job reads them."""
    [settings] = [each for each in documents("") if each["kind"] == "ConfigMap"]
    file = tmp_path_factory.mktemp("chart") / "trimtab.toml"
    file.write_text(settings["data"]["trimtab.toml"], "utf-8")
    return load_config(file)


def test_every_command_line_is_one_that_exists() -> None:
    lines = list(command_lines())
    assert {line[0] for line in lines} == {"trimtab", "trimtab-agent"}
    for line in lines:
        given, known = options_of(line)
        assert given <= known


def test_every_variable_is_a_setting() -> None:
    names = set()
    for values in VALUES:
        for _, container in containers(values):
            names |= {each["name"] for each in container.get("env", [])}
    for service in compose()["services"].values():
        names |= set(service.get("environment", {}))
    text = (CHART / "values.yaml").read_text("utf-8")
    names |= {word.strip(",.:") for word in text.split() if word.startswith(PREFIX)}
    ours = {name for name in names if name.startswith(PREFIX)}
    assert "TRIMTAB_REDIS_URL" in ours
    assert ours <= set(variables_of(JobConfig))
    # As the job sees them: one that Kubernetes would add is none of its settings.
    assert find_unknown(dict.fromkeys(ours, ""), JobConfig) == []


def test_the_job_takes_the_settings_of_the_chart(config: JobConfig) -> None:
    assert config.checkpoint == "/var/lib/trimtab/checkpoint"
    assert config.metrics_host == "0.0.0.0"
    assert config.metrics_port == METRICS == JobConfig.model_fields["metrics_port"].default
    assert config.round_settings().round.observe_only


@pytest.mark.parametrize("values", VALUES)
def test_every_container_is_locked_down(values: str) -> None:
    for pod, container in containers(values):
        own = {**pod["securityContext"], **container["securityContext"]}
        assert own["runAsNonRoot"]
        assert own["runAsUser"] == 10001
        assert own["readOnlyRootFilesystem"]
        assert not own["allowPrivilegeEscalation"]
        assert own["capabilities"] == {"drop": ["ALL"]}
        assert not pod["automountServiceAccountToken"]
        # What is written is on a volume: Spark and Python write below /tmp.
        assert "/tmp" in {mount["mountPath"] for mount in container["volumeMounts"]}
    for service in compose()["services"].values():
        if service["image"].startswith("trimtab-"):
            assert service["read_only"]
            assert service["user"] == "10001:10001"


@pytest.mark.parametrize("values", VALUES)
def test_every_mount_has_its_volume(values: str) -> None:
    for pod, container in containers(values):
        there = {volume["name"] for volume in pod["volumes"]} | {"seen"}
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert mounted <= there


def test_probes_and_policies_name_the_ports_that_are_served() -> None:
    served = {"job": METRICS, "api": API}
    for _, container in containers(""):
        [port] = container["ports"]
        assert port["containerPort"] == served[container["name"]]
        path = {"job": "/metrics", "api": "/"}[container["name"]]
        for name in ("livenessProbe", "startupProbe", "readinessProbe"):
            if probe := container.get(name):
                assert (probe["httpGet"]["path"], probe["httpGet"]["port"]) == (path, port["name"])
    policies = [each for each in documents("") if each["kind"] == "NetworkPolicy"]
    opened = {
        port["port"]
        for policy in policies
        for rule in policy["spec"].get("ingress", [])
        for port in rule["ports"]
    }
    assert opened == set(served.values())


def test_the_pods_have_the_memory_that_the_settings_need(config: JobConfig) -> None:
    """With less the job does not start (`streaming.sizing`)."""
    [job] = [container for _, container in containers("") if container["name"] == "job"]
    assert _mib(job["resources"]["limits"]["memory"]) >= config.size.whole_mib
    for each in _applications():
        driver = each["spec"]["driver"]
        assert driver["memory"] == config.size.heap
        assert _mib(driver["memory"]) + _mib(driver["memoryOverhead"]) >= config.size.whole_mib


def test_the_page_says_what_fleets_need() -> None:
    page = (ROOT / "docs/deployment.md").read_text("utf-8")
    row = r"^\| ([\d,]+) \| ([\d,]+) \| ([\d,]+) MiB \| ([\d,]+) MiB \| (\d+) s \|$"
    rows = re.findall(row, page, re.M)
    assert len(rows) == 4
    for cells in rows:
        brokers, bundles, *needs = (int(cell.replace(",", "")) for cell in cells)
        size = Size(brokers=brokers, bundles=bundles)
        assert [size.heap_mib, size.whole_mib, round(size.trigger_s, 6)] == needs


def test_the_page_names_the_alerts_that_page_a_person() -> None:
    page = (ROOT / "docs/deployment.md").read_text("utf-8")
    rules = yaml.safe_load((ROOT / "deploy/alerts/trimtab.yml").read_text("utf-8"))
    alerts = [rule for group in rules["groups"] for rule in group["rules"]]
    waking = {each["alert"] for each in alerts if each["labels"]["severity"] == "page"}
    assert set(re.findall(r"`(Trimtab\w+)`", page)) == waking


def _mib(quantity: str) -> int:
    number = quantity.rstrip("Mim")
    assert quantity.removeprefix(number) in ("Mi", "m")
    return int(number)


def _applications() -> list[dict[str, Any]]:
    found = [each for each in documents("spark") if each["kind"] == "SparkApplication"]
    assert len(found) == 2
    return found


def test_the_spark_operator_starts_what_the_session_would(config: JobConfig) -> None:
    packaged = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert config.spark.master.startswith("local")
    [local_files] = [jar for jar in jars.list_locked("connector") if "bare-naked" in jar.coordinate]
    for each in _applications():
        spec = each["spec"]
        assert f"pyspark=={spec['sparkVersion']}" in packaged["dependencies"]
        started = Path(spec["mainApplicationFile"].removeprefix("local://"))
        assert (ROOT / "deploy/docker" / started.name).is_file()
        path = Path(spec["sparkConf"]["spark.driver.extraClassPath"])
        assert path == Path("/var/cache/trimtab/jars") / local_files.path.name
        java = spec["driver"]["javaOptions"]
        assert "-Xss4m" in java
        assert "-XX:+ExitOnOutOfMemoryError" in java
        assert java.endswith("site-packages/streaming/log4j2.properties")


@pytest.mark.parametrize("values", ["brokers", "everything"])
def test_the_agent_has_time_to_give_its_bundles_away(values: str) -> None:
    for pod, container in containers(values):
        if container["name"] == "agent":
            options = dict(each.split("=", 1) for each in container["args"][1:])
            # `agent.running` joins the agent for five seconds more.
            assert pod["terminationGracePeriodSeconds"] >= float(options["--drain-seconds"]) + 10
            name = options["--broker"].replace("$(POD_NAME)", "trimtab-broker-0")
            name = name.replace("$(POD_NAMESPACE)", "default")
            parse_subject(f"{options['--cluster']}/{name}")


def test_the_agents_address_names_the_user_that_redis_acl_makes() -> None:
    [agent] = [each for _, each in containers("brokers") if each["name"] == "agent"]
    broker = dict(each.split("=", 1) for each in agent["args"][1:])["--broker"]
    address = {each["name"]: each.get("value", "") for each in agent["env"]}["TRIMTAB_REDIS_URL"]
    user = user_name(Role.BROKER, ["east"], broker).replace("/", "%2F").replace(":", "%3A")
    assert address.startswith(f"redis://{user}@")


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)
def test_the_topics_are_as_the_job_wants_them(topic: Topic) -> None:
    """On a Kafka with three brokers, whose own defaults are the worst that it allows."""
    made = kafka_topic(topic, 3)["spec"]
    worst = {
        "cleanup.policy": "delete",
        RETENTION: "1",
        IN_SYNC: "1",
        UNCLEAN: "true",
        "message.timestamp.type": "CreateTime",
    }
    found = Found(made["partitions"], made["replicas"], worst | made["config"])
    assert judge(topic, found, 3) == []


def test_redis_is_as_the_doctor_wants_it() -> None:
    lines = (ROOT / "deploy/redis.conf").read_text("utf-8").splitlines()
    settings = dict(line.split(" ", 1) for line in lines if line and not line.startswith("#"))
    for name, (_, _, wanted) in _TOLD.items():
        assert settings[name] == wanted
    assert settings["appendfsync"] == _FSYNC[0]
    assert "aclfile" in settings


def test_the_compose_file_names_what_it_mounts() -> None:
    stack = compose()
    volumes = set(stack["volumes"])
    for name, service in stack["services"].items():
        for mount in service.get("volumes", []):
            source, target, *_ = _mount(mount)
            assert target.startswith("/"), name
            if source.startswith("./"):
                assert (ROOT / "deploy" / source).is_file()
            elif not source.startswith("${"):
                assert source in volumes
    published = [port for each in stack["services"].values() for port in each.get("ports", [])]
    assert sorted(published) == [f"127.0.0.1:{port}:{port}" for port in (METRICS, API)]


def _mount(mount: str) -> list[str]:
    """Source, target and mode; a variable's message may have colons."""
    head, _, rest = mount.rpartition("}")
    source, *more = rest.split(":")
    return [f"{head}}}{source}" if head else source, *more]


def test_no_image_names_a_registry() -> None:
    images = [each["image"] for each in compose()["services"].values()]
    images += [container["image"] for values in VALUES for _, container in containers(values)]
    # A host has a dot before the first slash; ${…:?…} asks for one.
    named = [each.split(":")[0] for each in images if not each.startswith("${")]
    assert named
    assert not [each for each in named if "." in each.partition("/")[0]]
