"""What logs with one file a task share: which files are read, and how items and slices are called."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from polyweave_torch.evallogs.options import Options, choose, label, lookup
from polyweave_torch.evallogs.run import Run


class Task(NamedTuple):
    """A file over one task."""

    name: str
    """"" where the file's name doesn't tell."""
    path: Path
    time: str


def find_tasks(paths: list[Path], options: Options, pattern: re.Pattern[str]) -> tuple[list[Task], list[str]]:
    """The latest file of each task, and a warning where there are earlier ones.

    Args:
        paths: the files.
        options: ``arm`` chooses the folder of one model.
        pattern: finds ``task`` and ``time`` in the name of a file.
    """
    found: dict[tuple[Path, str], list[Task]] = {}
    for path in paths:
        match = pattern.search(path.name)
        name = match["task"] if match else path.stem if len(paths) > 1 else ""
        found.setdefault((path.parent, name), []).append(Task(name, path, match["time"] if match else ""))
    names = [name for _, name in found]
    folders = list(dict.fromkeys(folder for folder, _ in found))
    if options.arm is not None or len(set(names)) < len(names):
        where = str(Path(*paths[0].parts[:-2]))
        arm = choose(options.arm, [folder.name for folder in folders], option="arm", where=where, what="model")
        found = {key: tasks for key, tasks in found.items() if key[0].name == arm}
    warnings = []
    latest = []
    for (_, name), tasks in sorted(found.items(), key=lambda item: item[0][1]):
        tasks.sort(key=lambda task: task.time)
        latest.append(tasks[-1])
        if len(tasks) > 1:
            warnings.append(f"{name} was run {len(tasks)} times; the latest is read, of {tasks[-1].time}")
    return latest, warnings


def item_of(task: Task, item: Any, *, several: bool) -> Any:
    """The id of an item: with the task's name where several are read."""
    return f"{task.name}/{label(item)}" if several else item


def slice_of(
    task: Task, row: Mapping[str, Any], options: Options, where: str, *, several: bool, inside: Sequence[str]
) -> str | None:
    """The slice that was asked for; by default the task, where there are several."""
    if options.slice is None:
        return task.name if several else None
    if options.slice == "task" and task.name:
        return task.name
    return label(lookup(row, options.slice, where, inside=inside))


def of_one_task(run: Run, tasks: list[Task], read: list[Task], options: Options) -> Run:
    """The run, with ids that don't name the task where only one was read."""
    if len(read) > 1:
        return run
    only = read[0].name
    ids = [name.removeprefix(f"{only}/") for name in run.ids] if len(tasks) > 1 else run.ids
    return replace(run, ids=ids, task=only or None, slices=run.slices if options.slice else None)
