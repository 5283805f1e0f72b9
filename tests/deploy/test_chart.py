"""The chart renders to what Kubernetes takes, and its plain manifests are made of it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from deploy.chart import CHART, TemplateError, merge, render, render_chart
from deploy.manifests import FOLDER, manifests, values_of
from tests.support.deployed import VALUES, documents
from tests.support.made import assert_made

CUSTOM = {"SparkApplication"}
"""Kinds of operators: Kubernetes has no schema of them."""


@cache
def validator(kind: str) -> Draft202012Validator:
    """Of Kubernetes 1.29, which knows every member; ``kind``: with its version before it."""
    known = json.loads((Path(__file__).parent / "kubernetes.json").read_text("utf-8"))
    return Draft202012Validator(
        {"$ref": f"#/$defs/{known['kinds'][kind]}", "$defs": known["$defs"]}
    )


@pytest.mark.parametrize("values", VALUES)
def test_kubernetes_takes_each_object(values: str) -> None:
    for each in documents(values):
        if each["kind"] not in CUSTOM:
            kind = f"{each['apiVersion']} {each['kind']}"
            assert [*validator(kind).iter_errors(each)] == []


def test_the_schemas_refuse_a_member_that_does_not_exist() -> None:
    [service] = [each for each in documents("") if each["kind"] == "Service"]
    wrong = {**service, "spec": {**service["spec"], "selectors": {}}}
    assert [*validator("v1 Service").iter_errors(wrong)]


def test_the_plain_manifests_are_made_of_the_chart() -> None:
    made = dict(manifests())
    for name, text in made.items():
        assert_made(FOLDER / name, text)
    assert {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.yaml")} == made.keys()


@pytest.mark.skipif(shutil.which("helm") is None, reason="Helm is not installed")
@pytest.mark.parametrize("values", VALUES)
def test_helm_renders_the_same(values: str) -> None:
    command = ["helm", "template", "trimtab", str(CHART)]
    if values:
        command += ["--values", str(CHART / "ci" / f"{values}-values.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    theirs = [each for each in yaml.safe_load_all(done.stdout) if each]
    assert sorted(theirs, key=_name) == sorted(documents(values), key=_name)


def _name(document: Mapping[str, Any]) -> tuple[str, str]:
    return document["kind"], document["metadata"]["name"]


def test_every_value_is_used_and_every_value_used_has_a_default() -> None:
    """A value that nothing reads is a promise; one without a default fails in a template."""
    templates = "".join(path.read_text("utf-8") for path in (CHART / "templates").iterdir())
    defaults = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
    for path in _paths(defaults, ".Values"):
        assert path in templates
    for name in VALUES:
        unknown = set(_paths(values_of(name), "")) - set(_paths(defaults, ""))
        assert not {each for each in unknown if not _below(each, defaults)}


def _paths(tree: Mapping[str, Any], prefix: str) -> list[str]:
    found = []
    for name, value in tree.items():
        path = f"{prefix}.{name}"
        found += _paths(value, path) if isinstance(value, Mapping) and value else [path]
    return found


def _below(path: str, defaults: Mapping[str, Any]) -> bool:
    """Whether the path is inside a value that is a free map or list."""
    found: Any = defaults
    for name in path.split(".")[1:]:
        if found == {}:
            return True
        if not isinstance(found, Mapping) or name not in found:
            return False
        found = found[name]
    return True


@pytest.mark.parametrize(
    ("template", "text"),
    [
        pytest.param("a: {{ .Values.word }}", "a: x", id="a path"),
        pytest.param("a: {{ .Values.word | quote }}", 'a: "x"', id="a pipeline"),
        pytest.param(
            "a:\n  {{- toYaml .Values.list | nindent 2 }}", "a:\n  - 1\n  - 2", id="a list"
        ),
        pytest.param("{{ if .Values.no }}a{{ else }}b{{ end }}", "b", id="a choice"),
        pytest.param('{{ if eq .Values.word "x" }}a{{ end }}', "a", id="a comparison"),
        pytest.param("a\n{{- if .Values.no }}\nb\n{{- end }}\nc", "a\nc", id="a line left out"),
        pytest.param(
            "{{ range .Values.list }}{{ . }}{{ $.Values.word }}{{ end }}", "1x2x", id="each"
        ),
    ],
)
def test_a_template_is_rendered_as_helm_does(template: str, text: str) -> None:
    values = {"word": "x", "list": [1, 2], "no": ""}
    assert render(template, {"Values": values}) == text


@pytest.mark.parametrize(
    "template",
    [
        "{{ .Values.absent }}",
        "{{ .Values.list }}",
        "{{ printf .Values.word }}",
        "{{ if .Values.word }}",
        "{{ end }}",
        '{{ required "give it" .Values.empty }}',
    ],
)
def test_what_is_not_known_is_refused(template: str) -> None:
    with pytest.raises(TemplateError):
        render(template, {"Values": {"word": "x", "list": [1], "empty": ""}})


def test_values_are_merged_map_by_map() -> None:
    below = {"a": {"b": 1, "c": [1, 2]}, "d": 1}
    assert merge(below, {"a": {"c": [3]}}) == {"a": {"b": 1, "c": [3]}, "d": 1}


def test_brokers_without_a_cluster_are_refused() -> None:
    with pytest.raises(TemplateError, match="cluster"):
        render_chart({"brokers": {"enabled": True}}, "trimtab")


def test_the_chart_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    assert {chart["version"], chart["appVersion"]} == {version("trimtab")}
