"""From saved predictions to the report, as data, text and markdown."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from polyweave_torch.demo.data import CLASSES, TRAIN, VALIDATION
from polyweave_torch.demo.model import ARMS
from polyweave_torch.functional._tables import markdown_table, plain, text_table
from polyweave_torch.functional.channel import channel_counts, channel_intervals, estimate_channel
from polyweave_torch.functional.cochran import cochran_q
from polyweave_torch.functional.ensemble import disagreement_rate, mean_accuracy, pairwise_disagreement
from polyweave_torch.functional.gating import phase_plane_diagnosis, quadrant_names, should_activate_step
from polyweave_torch.functional.intervals import wilson_interval
from polyweave_torch.functional.mcnemar import mcnemar
from polyweave_torch.functional.multiplicity import holm_bonferroni
from polyweave_torch.functional.votes import majority_vote

ALPHA = 0.05


def build_report(
    predictions: Mapping[str, Any], growth: Sequence[Mapping[str, float]], *, seed: int, epochs: int, members: int
) -> dict[str, Any]:
    """Everything the report says, as plain data without NaN.

    Args:
        predictions: ``test_target`` ``[N]`` and, by arm, ``<arm>_test`` ``[M, N]``.
        growth: of each Sigma-Pi member, growth by block.
        seed: recorded.
        epochs: recorded.
        members: recorded.
    """
    target = torch.as_tensor(predictions["test_target"])
    preds = {arm: torch.as_tensor(predictions[f"{arm}_test"]) for arm in ARMS}
    votes = {arm: majority_vote(preds[arm], CLASSES) for arm in ARMS}
    before, after = (votes[arm] == target for arm in ARMS)
    slices = {"all": channel_counts(before, after)}
    by_digit = channel_counts(before, after, slice_index=target, num_slices=CLASSES)
    slices.update({str(digit): by_digit[digit] for digit in range(CLASSES)})
    omnibus = cochran_q(torch.cat([preds[arm] == target for arm in ARMS]).T)
    report = {
        "schema": 1,
        "data": {"name": "scikit-learn digits", "train": TRAIN, "validation": VALIDATION, "test": len(target)},
        "settings": {"seed": seed, "epochs": epochs, "members": members},
        "arms": {arm: _arm(preds[arm], votes[arm], target) for arm in ARMS},
        "channel": _channels(slices),
        "cochran_q": {"statistic": omnibus.statistic, "df": omnibus.df, "p_value": omnibus.p_value, "k": omnibus.k},
        "gates": [dict(member) for member in growth],
        "logs": "logs",
    }
    data: dict[str, Any] = plain(report)
    return data


def to_text(report: Mapping[str, Any]) -> str:
    """The report for a terminal."""
    text = _render(report, heading=lambda title: f"{title}\n{'=' * len(title)}", table=text_table)
    return "\n\n".join(block if "\n" in block else textwrap.fill(block, 100) for block in text.split("\n\n"))


def to_markdown(report: Mapping[str, Any]) -> str:
    """The report as markdown."""
    return _render(report, heading=lambda title: f"## {title}", table=markdown_table)


def _arm(preds: Tensor, vote: Tensor, target: Tensor) -> dict[str, Any]:
    right = [*(preds == target).sum(1), (vote == target).sum()]
    accuracies = [wilson_interval(int(count), len(target)) for count in right]
    rows = [{"accuracy": a.p, "low": a.low, "high": a.high} for a in accuracies]
    return {
        "members": rows[:-1],
        "ensemble": rows[-1],
        "mean_member_accuracy": mean_accuracy(preds, target),
        "disagreement": disagreement_rate(preds),
        "pairwise_disagreement": pairwise_disagreement(preds),
    }


def _channels(slices: Mapping[str, Tensor]) -> dict[str, Any]:
    counts = torch.stack(list(slices.values()))
    channel = estimate_channel(counts)
    diagnosis = phase_plane_diagnosis(channel)
    gate = should_activate_step(channel.p0, channel)
    bounds = channel_intervals(counts)
    tests = mcnemar(counts=counts)
    adjusted = torch.cat([tests.p_value[:1], holm_bonferroni(tests.p_value[1:])])
    names = quadrant_names(diagnosis.quadrant)
    return {
        name: {
            "counts": {"n00": table[0, 0], "n01": table[0, 1], "n10": table[1, 0], "n11": table[1, 1]},
            "c": channel.c[row],
            "gamma": channel.gamma[row],
            "delta": channel.delta[row],
            "c_interval": [bounds.c.low[row], bounds.c.high[row]],
            "gamma_interval": [bounds.gamma.low[row], bounds.gamma.high[row]],
            "surplus": diagnosis.surplus[row],
            "quadrant": names[row],
            "activate": gate.activate[row],
            "mcnemar": {
                "method": tests.method[row],
                "discordant": tests.discordant[row],
                "underpowered": tests.underpowered[row],
                "p_value": tests.p_value[row],
                "p_adjusted": adjusted[row],
            },
        }
        for row, (name, table) in enumerate(slices.items())
    }


def _render(report: Mapping[str, Any], *, heading: Any, table: Any) -> str:
    settings, data = report["settings"], report["data"]
    overall = report["channel"]["all"]
    blocks = [
        heading("Additive against Sigma-Pi on handwritten digits"),
        "Does a layer that multiplies its inputs make other errors than one that adds them? Additive networks have one "
        "linear hidden layer; Sigma-Pi networks have a layer of as many units, each of which adds a gated product of "
        "the pixels to their weighted sum.",
        f"Two ensembles of {settings['members']} networks, {settings['epochs']} epochs on {data['train']} images, "
        f"judged on {data['test']} others. Seed {settings['seed']}.",
        heading("Accuracy, with Wilson's 95 % interval"),
        table(("arm", "network", "accuracy", "interval"), list(_accuracy_rows(report["arms"]))),
        heading("What the Sigma-Pi ensemble's vote corrected and corrupted"),
        table(
            ("digit", "n", "corrected", "corrupted", "c", "gamma", "delta", "quadrant", "activate", "p", "p Holm"),
            [_channel_row(name, row) for name, row in report["channel"].items()],
        ),
        "Corrected: wrong in the additive vote, right in the Sigma-Pi vote; corrupted: the other way round. c and "
        "gamma are their rates among the wrong and the right ones (smoothed by 0.5). p is McNemar's; over the ten "
        "digits it is adjusted after Holm. Fewer than 25 discordant samples can show little: this table has "
        f"{overall['mcnemar']['discordant']}.",
        "Rates of few items are mostly the smoothing. Activate, that is use the Sigma-Pi vote, is by expected gain and "
        "not by significance, which is p Holm.",
        _verdict(overall),
        heading("Do the networks differ?"),
        _omnibus(report["cochran_q"]),
        table(
            ("arm", "not unanimous", "pairwise disagreement"),
            [(arm, _share(row["disagreement"]), _share(row["pairwise_disagreement"])) for arm, row in _arms(report)],
        ),
        heading("Recruitment of the product"),
        table(
            ("member", "block", "growth of mean exp(gate)"),
            [
                (i, block, f"{grown:+.4f}")
                for i, member in enumerate(report["gates"])
                for block, grown in member.items()
            ],
        ),
        _recruitment(report["gates"]),
    ]
    return "\n\n".join(blocks) + "\n"


def _arms(report: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    return [(arm, report["arms"][arm]) for arm in ARMS]


def _accuracy_rows(arms: Mapping[str, Any]) -> Iterable[tuple[str, ...]]:
    for arm in ARMS:
        for name, row in (*enumerate(arms[arm]["members"]), ("vote", arms[arm]["ensemble"])):
            yield arm, str(name), _share(row["accuracy"]), f"[{_share(row['low'])}, {_share(row['high'])}]"


def _channel_row(name: str, row: Mapping[str, Any]) -> tuple[Any, ...]:
    counts, test = row["counts"], row["mcnemar"]
    rates = (_share(row["c"]), _share(row["gamma"]), "-" if row["delta"] is None else f"{row['delta']:+.4f}")
    # Where no item changed sides the rates are made of the smoothing alone.
    still = test["discordant"] == 0
    call = ("no change", "-") if still else (row["quadrant"], "yes" if row["activate"] else "no")
    return (
        name,
        sum(counts.values()),
        counts["n01"],
        counts["n10"],
        *rates,
        *call,
        f"{test['p_value']:.3g}",
        f"{test['p_adjusted']:.3g}",
    )


def _verdict(overall: Mapping[str, Any]) -> str:
    test = overall["mcnemar"]
    said = f"p = {test['p_value']:.3g} ({test['method']}, {test['discordant']} discordant samples)"
    if test["discordant"] == 0:
        return "The two votes are right on the same images: there is nothing to test."
    if test["p_value"] >= ALPHA:
        return f"The difference between the votes is within chance at {ALPHA}: {said}."
    better = "better" if overall["delta"] > 0 else "worse"
    return f"The Sigma-Pi vote is {better} by more than chance at {ALPHA}: {said}."


def _omnibus(q: Mapping[str, Any]) -> str:
    said = f"Cochran's Q over all {q['k']} networks: {q['statistic']:.2f} on {q['df']} degrees of freedom, p = "
    tail = f"{q['p_value']:.3g}" if q["p_value"] is not None else "undefined"
    verdict = "they differ in accuracy" if (q["p_value"] or 0) < ALPHA else "equal accuracy is not ruled out"
    return f"{said}{tail}: {verdict}."


def _recruitment(gates: Sequence[Mapping[str, float]]) -> str:
    values = [grown for member in gates for grown in member.values()]
    if not values:
        return "No gate was read: training was shorter than one logging interval."
    grew, shrank = sum(value > 0 for value in values), sum(value < 0 for value in values)
    return f"{grew} of {len(values)} gates grew and {shrank} shrank. Recruitment is not accuracy: see the table above."


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
