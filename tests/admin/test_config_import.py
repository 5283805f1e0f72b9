"""`trimtab config import`: a broker.conf becomes the job's settings, or all that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from admin.cli import build_app
from admin.exit_codes import OK, USAGE
from control.config_import.broker_conf import import_conf
from control.config_import.java_properties import parse
from streaming.config import load_config
from trimtab.settings import Settings
from trimtab.settings.setting import InvalidSettings

PACKAGE = "org.apache.pulsar.broker.loadbalance"
EXTENSIBLE = f"loadManagerClassName={PACKAGE}.extensions.ExtensibleLoadManagerImpl\n"
TRANSFER = {
    "round.shedding": "transfer",
    "round.placement": "least-average-usage",
    "split.trigger": "instantaneous",
}


def changes(text: str) -> dict[str, object]:
    """The settings that a file changes."""
    found = import_conf(parse(text))
    defaults = Settings().dumped()
    return {path: v for path, v in found.settings.dumped().items() if v != defaults[path]}


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidSettings) as caught:
        import_conf(parse(text))
    return caught.value.problems


def run(folder: Path, content: str | bytes, *options: str) -> tuple[Path, Result]:
    """The command's result for a file of ``content``, and a file of what it printed."""
    file, printed = folder / "broker.conf", folder / "trimtab.toml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode("latin-1"))
    result = CliRunner().invoke(build_app(["config"]), ["config", "import", str(file), *options])
    printed.write_text(result.stdout)
    return printed, result


def test_what_is_printed_is_a_settings_file_of_the_job(tmp_path: Path) -> None:
    printed, result = run(
        tmp_path,
        "  loadBalancerSheddingIntervalMinutes = 5 \n"
        "loadBalancerBrokerThresholdShedderPercentage=20\n"
        "loadBalancerSheddingGracePeriodMinutes=30\n"
        "lowerBoundarySheddingEnabled=TRUE\n"
        "loadBalancerHistoryResourcePercentage=.5\n"
        "loadBalancerDebugModeEnabled=true\n"
        "loadBalancerOverrideBrokerNicSpeedGbps=\n"
        "brokerServicePort=6650\n",
    )
    assert result.exit_code == OK
    assert result.stdout == (
        "[settings.round]\n"
        "interval = 300.0  # s, loadBalancerSheddingIntervalMinutes\n"
        "\n"
        "[settings.threshold]\n"
        "threshold = 0.2  # fraction, loadBalancerBrokerThresholdShedderPercentage\n"
        "lower_boundary = true  # lowerBoundarySheddingEnabled\n"
        "\n"
        "[settings.weights]\n"
        "history = 0.5  # fraction, loadBalancerHistoryResourcePercentage\n"
    )
    said, summary = result.stderr.splitlines()
    assert said == (
        "line 6: loadBalancerDebugModeEnabled = 'true' is not imported: "
        "trimtab always credits swaps: transfer.credit_swaps"
    )
    assert summary == (
        f"{tmp_path / 'broker.conf'}: settings imported: 5, of them other than Pulsar's "
        "defaults: 4; keys not imported: 1, not about load balancing: 1"
    )
    assert load_config(printed).round_settings().round.interval == 300.0


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        pytest.param("loadBalancerSheddingIntervalMinutes=5\n" * 2, 300.0, id="the same twice"),
        pytest.param(
            "loadBalancerSheddingIntervalMinutes=x\nloadBalancerSheddingIntervalMinutes=+5",
            300.0,
            id="the last wins",
        ),
        pytest.param(
            "loadBalancerSheddingIntervalMinutes=5\nloadBalancerSheddingIntervalMinutes= \n",
            60.0,
            id="set to nothing at last",
        ),
    ],
)
def test_a_key_that_is_given_twice(text: str, changed: float) -> None:
    assert import_conf(parse(text)).settings.round.interval == changed


@pytest.mark.parametrize(
    ("text", "weight"),
    [
        pytest.param("loadBalancerBandwithInResourceWeight=2", 2.0, id="old"),
        pytest.param(
            "loadBalancerBandwithInResourceWeight=2\nloadBalancerBandwidthInResourceWeight=1",
            2.0,
            id="old beside the default",
        ),
        pytest.param(
            "loadBalancerBandwidthInResourceWeight=3\nloadBalancerBandwithInResourceWeight=2",
            3.0,
            id="the right one first",
        ),
    ],
)
def test_the_old_spelling_counts_while_the_right_one_has_its_default(
    text: str, weight: float
) -> None:
    assert import_conf(parse(text)).settings.weights.bandwidth_in == weight


@pytest.mark.parametrize(("correct", "read"), [("1", "with"), ("3", "width")])
def test_a_spelling_that_pulsar_does_not_read_is_noted(correct: str, read: str) -> None:
    (note,) = import_conf(
        parse(
            "loadBalancerBandwithInResourceWeight=2\n"
            f"loadBalancerBandwidthInResourceWeight={correct}"
        )
    ).notes
    _, _, counts = note.partition("is not imported: Pulsar reads line ")
    assert f"loadBalancerBand{read}InResourceWeight = " in counts


def test_classes_become_strategies() -> None:
    assert changes(
        f"loadBalancerLoadSheddingStrategy={PACKAGE}.impl.AvgShedder\n"
        f"loadBalancerLoadPlacementStrategy={PACKAGE}.impl.AvgShedder\n"
        f"loadManagerClassName={PACKAGE}.impl.ModularLoadManagerImpl\n"
    ) == {"round.shedding": "avg", "round.placement": "avg"}
    assert changes(
        f"loadBalancerLoadPlacementStrategy={PACKAGE}.extensions.strategy"
        ".LeastResourceUsageWithWeight\n"
    ) == {"round.placement": "least-average-usage"}


@pytest.mark.parametrize(
    "named",
    [
        pytest.param("", id="nothing"),
        pytest.param(
            f"loadBalancerLoadSheddingStrategy={PACKAGE}.impl.ThresholdShedder\n"
            f"loadBalancerLoadPlacementStrategy={PACKAGE}.impl.LeastLongTermMessageRate\n",
            id="the defaults",
        ),
        pytest.param(
            f"loadBalancerLoadSheddingStrategy={PACKAGE}.impl.AvgShedder\n", id="avg for one only"
        ),
        pytest.param("loadBalancerLoadPlacementStrategy=org.acme.Placer\n", id="a foreign placer"),
        pytest.param(
            f"loadBalancerLoadSheddingStrategy={PACKAGE}.extensions.scheduler.TransferShedder\n",
            id="its own",
        ),
    ],
)
def test_the_extensible_manager_runs_its_own_strategies(tmp_path: Path, named: str) -> None:
    printed, result = run(tmp_path, EXTENSIBLE + named)
    assert changes(EXTENSIBLE + named) == TRANSFER
    assert load_config(printed).settings == TRANSFER
    assert 'shedding = "transfer"  # loadManagerClassName' in result.stdout
    assert "round.shedding is transfer" in result.stderr


def test_an_unknown_shedder_of_the_extensible_manager_could_be_one_of_its_own() -> None:
    (problem,) = problems(EXTENSIBLE + "loadBalancerLoadSheddingStrategy=org.acme.Shedder\n")
    assert problem.startswith("line 2: loadBalancerLoadSheddingStrategy = 'org.acme.Shedder': must")


@pytest.mark.parametrize("manager", ["impl.ModularLoadManagerImpl", "impl.SimpleLoadManagerImpl"])
def test_no_manager_shuts_out_brokers_of_another(manager: str) -> None:
    found = import_conf(parse(f"loadManagerClassName={PACKAGE}.{manager}\n"))
    assert found.settings == Settings()
    assert "placement.load_manager is not set" in found.notes[0]
    assert ("does not know it" in found.notes[0]) == ("Simple" in manager)


def test_a_balancer_that_is_off_stays_off() -> None:
    off = {"round.enabled": False, "split.enabled": False}
    assert changes("loadBalancerEnabled=false\nloadBalancerSheddingEnabled=true\n") == off
    assert changes("loadBalancerEnabled=true\n") == {}


def test_every_problem_is_told_with_its_line_and_nothing_printed(tmp_path: Path) -> None:
    _, result = run(
        tmp_path,
        "# of a broker\n"
        f"loadBalancerLoadSheddingStrategy={PACKAGE}.impl.AvgShedder\n"
        "loadBalancerBrokerThresholdShedderPercentage=-1\n"
        "loadBalancerSheddingIntervalMinutes=1.5\n"
        "loadBalancerSheddingEnabled=yes\n"
        "loadBalancerAvgShedderLowThreshold=50\n"
        "maxUnloadPercentage=NaN\n"
        "loadBalancerCPUResourceWeight=1e999\n"
        "loadBalancerBrokerMaxTopics=99999999999999999999\n"
        "defaultNamespaceBundleSplitAlgorithm=in_half\n"
        "loadBalancerEnabled=1\n",
    )
    assert (result.exit_code, result.stdout) == (USAGE, "")
    header, *told, last = result.stderr.splitlines()
    assert header.endswith("broker.conf: nothing is imported:")
    assert last.startswith("Next: edit ")
    assert told == [
        f"line 2: loadBalancerLoadSheddingStrategy = '{PACKAGE}.impl.AvgShedder', "
        "loadBalancerLoadPlacementStrategy (not set): "
        "avg placement and avg shedding go together or not at all",
        "line 3: loadBalancerBrokerThresholdShedderPercentage = '-1': "
        "must be from 0 to 1 (fraction), not -0.01",
        "line 4: loadBalancerSheddingIntervalMinutes = '1.5': must be a whole number",
        "line 5: loadBalancerSheddingEnabled = 'yes': "
        "must be true or false; Pulsar reads it as false",
        "line 6: loadBalancerAvgShedderLowThreshold = '50', "
        "loadBalancerAvgShedderHighThreshold (not set): must not be above avg.high_threshold",
        "line 7: maxUnloadPercentage = 'NaN': must be a number",
        "line 8: loadBalancerCPUResourceWeight = '1e999': must be finite, not inf",
        "line 9: loadBalancerBrokerMaxTopics = '99999999999999999999': must be a whole number",
        "line 10: defaultNamespaceBundleSplitAlgorithm = 'in_half': must be one of "
        "range_equally_divide, topic_count_equally_divide, specified_positions_divide, "
        "flow_or_qps_equally_divide",
        "line 11: loadBalancerEnabled = '1': must be true or false; Pulsar reads it as false",
    ]


def test_a_placer_of_avg_shedder_alone_is_told_where_it_stands() -> None:
    (problem,) = problems(f"\nloadBalancerLoadPlacementStrategy={PACKAGE}.impl.AvgShedder")
    assert problem.startswith(
        "loadBalancerLoadSheddingStrategy (not set), line 2: loadBalancerLoadPlacementStrategy = "
    )


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="empty"),
        pytest.param("# nothing\n", id="comments"),
        pytest.param(
            b"brokerServicePort=6650\n# \xff\xe9\xe2\x80\x83\nclusterName=\xc3\xa9", id="bytes"
        ),
    ],
)
def test_a_file_without_load_balancing_changes_nothing(
    tmp_path: Path, content: str | bytes
) -> None:
    printed, result = run(tmp_path, content)
    assert (result.exit_code, result.stdout) == (OK, "")
    assert "settings imported: 0," in result.stderr
    assert load_config(printed).round_settings() == Settings()


def test_a_malformed_file_gives_2(tmp_path: Path) -> None:
    _, result = run(tmp_path, "clusterName=\\u00\n")
    assert (result.exit_code, result.stdout) == (USAGE, "")
    assert "line 1: \\u must" in result.stderr


def test_a_path_that_is_no_file_gives_2(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.conf"):
        result = CliRunner().invoke(build_app(["config"]), ["config", "import", str(path)])
        assert (result.exit_code, result.stdout) == (USAGE, "")
        assert str(path) in result.stderr


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("loadBalancerOverrideBrokerNicSpeedGbps=10", "--nic-speed-gbits"),
        ("defaultNumberOfNamespaceBundles=4", "trimtab namespaces create NAME --bundles N"),
        ("clientMinVersionAllowed=3.0", "the brokers refuse old ones themselves"),
    ],
)
def test_a_key_that_is_not_the_jobs_says_what_to_do_instead(
    tmp_path: Path, line: str, says: str
) -> None:
    """Items 002-04, 002-46 and 001-20 of docs/pulsar-coverage.md."""
    _, result = run(tmp_path, line + "\n")
    assert result.exit_code == OK
    assert says in result.stderr


def test_supported_split_algorithms_are_an_allow_list(tmp_path: Path) -> None:
    """Item 000-29."""
    allowed = "supportedNamespaceBundleSplitAlgorithms=topic_count_equally_divide"
    default = "defaultNamespaceBundleSplitAlgorithm=topic_count_equally_divide"
    printed, result = run(tmp_path, f"{allowed}\n{default}\n")
    assert result.exit_code == OK
    found = load_config(printed).round_settings().split
    assert found.supported_algorithms() == ("topic_count_equally_divide",)
    (problem,) = problems(allowed)
    assert "range_equally_divide is not in split.supported" in problem
