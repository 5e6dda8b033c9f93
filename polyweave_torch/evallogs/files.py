"""Which of several files is the run."""

import os
from dataclasses import replace
from pathlib import Path

from polyweave_torch.evallogs.options import Options
from polyweave_torch.evallogs.run import ChoiceError


def one_file(paths: list[Path], options: Options) -> tuple[Path, Options]:
    """The only file, or the one that ``arm`` names by what sets its path apart; and the options left to choose within.

    Raises:
        ChoiceError: where there are several and none was named.
    """
    if len(paths) == 1:
        return paths[0], options
    folder = Path(os.path.commonpath(paths))
    named = {str(path.relative_to(folder)): path for path in paths}
    if options.arm in named:
        return named[options.arm], replace(options, arm=None)
    raise ChoiceError(f"{folder} holds {len(paths)} runs", option="arm", choices=list(named))
