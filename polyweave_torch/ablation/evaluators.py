"""What ``run_ablation`` evaluates with: a function of one case, a torch module, a simulator."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from polyweave_torch.ablation.cases import Case
from polyweave_torch.ablation.outcomes import Condition, Outcome, SimulatedOutcome, python_number

Answer = Outcome | bool | Tensor

ENVELOPE_FAULT, DEEP_FAULT, SEMANTIC_FAULT = 0.15, 0.25, 0.2
"""Simulated probability of each fault in one attempt of an arm that can show it."""


def baseline_conditions() -> list[Condition]:
    """The three arms of the simulated ablation: plain generation, structured envelope, array-IR.

    Example:
        >>> [condition.name for condition in baseline_conditions()]
        ['plain', 'structured', 'array-IR']
    """
    return [
        Condition("plain", {}),
        Condition("structured", {"structured": True}),
        Condition("array-IR", {"array_ir": True}),
    ]


class FunctionEvaluator:
    """Evaluates with a function of one case.

    Args:
        function: takes a case and a condition, and returns whether the case came out right, or an :class:`Outcome`
            where there is more to say.

    Example:
        >>> evaluate = FunctionEvaluator(lambda case, condition: len(case.description) < condition.options["longest"])
        >>> (outcome,) = evaluate([Case("a", "easy", description="short")], Condition("small", {"longest": 9}))
        >>> outcome.first_try, outcome.iterations
        (True, 1)
    """

    def __init__(self, function: Callable[[Case, Condition], Answer]) -> None:
        self._function = function

    def __call__(self, cases: Sequence[Case], condition: Condition) -> list[Outcome]:
        """The outcome of each case."""
        return [_outcome(case, condition, self._function(case, condition)) for case in cases]


class ModuleEvaluator:
    """Evaluates with a torch module, in eval mode and without gradients, on the device where its parameters are.

    Args:
        module: the module of all conditions, or one for each condition by its name.
        encode: makes the module's input from the cases of a batch: a tensor, or a tuple or dict of its arguments.
        decode: takes the module's output and the cases, and returns for each whether it came out right (a bool tensor
            ``[B]`` will do), or an :class:`Outcome` where there is more to say.

    Example:
        >>> import torch
        >>> evaluate = ModuleEvaluator(
        ...     {"identity": torch.nn.Identity(), "relu": torch.nn.ReLU()},
        ...     encode=lambda cases: torch.tensor([case.gold for case in cases]),
        ...     decode=lambda output, cases: output == torch.tensor([case.gold for case in cases]),
        ... )
        >>> cases = [Case("a", "easy", gold=1.0), Case("b", "easy", gold=-1.0)]
        >>> [outcome.first_try for outcome in evaluate(cases, Condition("relu"))]
        [True, False]
    """

    def __init__(
        self,
        module: nn.Module | Mapping[str, nn.Module],
        encode: Callable[[Sequence[Case]], Any],
        decode: Callable[[Any, Sequence[Case]], Sequence[Answer] | Tensor],
    ) -> None:
        self._module, self._encode, self._decode = module, encode, decode

    def __call__(self, cases: Sequence[Case], condition: Condition) -> list[Outcome]:
        """The outcome of each case."""
        module = self._module if isinstance(self._module, nn.Module) else self._module[condition.name]
        training = [part for part in module.modules() if part.training]
        module.eval()
        try:
            with torch.inference_mode():
                answers = self._decode(_forward(module, self._encode(cases)), cases)
        finally:
            for part in training:
                part.training = True
        return [_outcome(case, condition, answer) for case, answer in zip(cases, answers, strict=True)]


class SimulatedEvaluator:
    """Stands in for a model, to try the harness: nothing is measured, and every report of its outcomes says so.

    An attempt shows each fault that its arm can show with a probability of its own, independently: an envelope fault
    (plain only), a deep structural fault (plain and structured), a semantic fault (all arms alike). Whether it does
    depends on nothing but a hash of (seed, case, condition, attempt). Attempts are repeated until one shows none.

    Args:
        seed: another seed, another run.
        max_attempts: the budget; a case that is still wrong then has not converged.

    Raises:
        ValueError: where ``max_attempts`` is below 1.

    Example:
        >>> evaluate = SimulatedEvaluator()
        >>> case, (plain, _, _) = Case("a", "simple"), baseline_conditions()
        >>> evaluate([case], plain) == evaluate([case], plain)
        True
    """

    simulated = True

    def __init__(self, seed: int = 0, max_attempts: int = 5) -> None:
        if max_attempts < 1:
            raise ValueError(f"max_attempts must be at least 1, but is {max_attempts}")
        self._seed, self._max_attempts = seed, max_attempts
        self.identity = f"seed {seed}, {max_attempts} attempts"

    def __call__(self, cases: Sequence[Case], condition: Condition) -> list[Outcome]:
        """The outcome of each case."""
        return [self._simulate(case, condition) for case in cases]

    def _simulate(self, case: Case, condition: Condition) -> Outcome:
        structured, array_ir = (bool(condition.options.get(name)) for name in ("structured", "array_ir"))
        first = self._faults(case, condition, 1)
        faults, attempt = first, 1
        while any(faults) and attempt < self._max_attempts:
            attempt += 1
            faults = self._faults(case, condition, attempt)
        envelope, deep, semantic = first
        return SimulatedOutcome(
            case.id,
            case.stratum,
            condition.name,
            first_try=not any(first),
            converged=not any(faults),
            iterations=attempt,
            struct_errors0=envelope + deep,
            sem_errors0=int(semantic),
            engaged={name: True for name, on in (("structured", structured), ("array_ir", array_ir)) if on},
        )

    def _faults(self, case: Case, condition: Condition, attempt: int) -> tuple[bool, bool, bool]:
        """Whether the attempt shows an envelope, a deep and a semantic fault."""
        array_ir = bool(condition.options.get("array_ir"))
        key = json.dumps([self._seed, case.id, condition.name, attempt]).encode()
        digest = hashlib.blake2b(key, digest_size=24).digest()
        envelope, deep, semantic = (int.from_bytes(digest[i : i + 8], "big") / 2**64 for i in (0, 8, 16))
        return (
            envelope < ENVELOPE_FAULT and not (array_ir or bool(condition.options.get("structured"))),
            deep < DEEP_FAULT and not array_ir,
            semantic < SEMANTIC_FAULT,
        )


def _outcome(case: Case, condition: Condition, answer: Answer) -> Outcome:
    if isinstance(answer, Outcome):
        return answer
    # What is neither true nor false here is refused by run_ablation, as in an Outcome.
    right = python_number(answer)
    return Outcome(case.id, case.stratum, condition.name, first_try=right, converged=right, iterations=1)


def _forward(module: nn.Module, inputs: Any) -> Any:
    device = next((parameter.device for parameter in module.parameters()), None)
    moved = _to(inputs, device)
    if isinstance(moved, Mapping):
        return module(**moved)
    return module(*moved) if isinstance(moved, tuple) else module(moved)


def _to(inputs: Any, device: torch.device | None) -> Any:
    if device is None:
        return inputs
    if isinstance(inputs, Mapping):
        return {name: _to(value, device) for name, value in inputs.items()}
    if isinstance(inputs, tuple):
        return tuple(_to(value, device) for value in inputs)
    return inputs.to(device) if isinstance(inputs, Tensor) else inputs
