"""HELM: ``per_instance_stats.json``, an array of instances with their statistics."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from polyweave_torch.evallogs.files import one_file
from polyweave_torch.evallogs.json_stream import read_array
from polyweave_torch.evallogs.json_values import entries, part, read_document
from polyweave_torch.evallogs.options import Options, choose, label, lookup
from polyweave_torch.evallogs.outline import Outline
from polyweave_torch.evallogs.rows import Rows, outcome
from polyweave_torch.evallogs.run import Run

NAME = "helm"
OPTIONS = frozenset({"metric", "epochs", "id", "slice", "arm", "threshold"})


def sniff(shape: Outline) -> bool:
    """Elements with ``instance_id`` and a list of ``stats``."""
    return "instance_id" in shape.record and isinstance(shape.record.get("stats"), list)


def read(paths: list[Path], options: Options) -> Run:
    """Read one run: the mean of a statistic on each unperturbed instance; train trials are epochs."""
    path, options = one_file(paths, options)
    rows = Rows(path)
    perturbed = 0
    metrics: dict[str, None] = {}
    for where, instance in read_array(path):
        if instance.get("perturbation") is not None:
            perturbed += 1
            continue
        means = dict(_means(instance, where))
        metrics.update(dict.fromkeys(means))
        if options.metric is None:
            choose(None, list(metrics), option="metric", where=str(path), what="statistic")
        name = options.metric or next(iter(metrics))
        rows.add(
            where,
            lookup(instance, options.id or "instance_id", where),
            outcome(means.get(name, math.nan), where),
            epoch=instance.get("train_trial_index", 0),
            slice=None if options.slice is None else label(lookup(instance, options.slice, where)),
        )
    if not metrics:
        raise ValueError(f"{path}: no rows to compare")
    metric = choose(options.metric, list(metrics), option="metric", where=str(path), what="statistic")
    warnings = [f"{perturbed} perturbed instances are left out"] if perturbed else []
    details = {**_details(path), "metric": metric}
    return rows.finish(options, format=NAME, details=details, warnings=warnings)


def _means(instance: Mapping[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    """Name and mean of each statistic that is not of a perturbation."""
    for stat in entries(instance, "stats", where):
        if not isinstance(stat, Mapping) or not isinstance(stat.get("name"), Mapping):
            raise ValueError(f"{where}: expected statistics with a name")
        if stat["name"].get("perturbation") is not None:
            continue
        yield label(stat["name"].get("name")), stat.get("mean")


def _details(path: Path) -> dict[str, str]:
    """What the run's specification beside the statistics says."""
    spec = path.with_name("run_spec.json")
    document = read_document(spec) if spec.is_file() else None
    if not isinstance(document, dict):
        return {}
    adapter = part(document, "adapter_spec", str(spec))
    said = {
        "model": adapter.get("model"),
        "task": part(document, "scenario_spec", str(spec)).get("class_name"),
        "n-shot": adapter.get("max_train_instances"),
    }
    return {name: label(value) for name, value in said.items() if value is not None}
