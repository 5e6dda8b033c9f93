"""Gates of the public Sigma-Pi layers, however they are wrapped."""

import copy
import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from polyweave import ConvSigmaPi2d, PolyLinear, SigmaPiLinear
from torch import Tensor, nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.nn.utils import parametrize
from torch.optim.swa_utils import AveragedModel

from polyweave_torch.functional.pi_scale import gate_values, pi_scale_mean, pi_scales


def with_gate(layer: nn.Module, seed: int, name: str = "pi_scale") -> nn.Module:
    """The layer with random gates, so that two layers differ."""
    gate = getattr(layer, name)
    with torch.no_grad():
        gate.copy_(torch.randn(gate.shape, generator=torch.Generator().manual_seed(seed)))
    return layer


def by_hand(gate: Tensor) -> float:
    values = gate.detach().double().flatten().tolist()
    return math.fsum(math.exp(value) for value in values) / len(values)


def make_model() -> Any:
    return nn.Sequential(
        with_gate(ConvSigmaPi2d(3), 1),
        nn.Flatten(),
        nn.Linear(27, 4),
        with_gate(PolyLinear(4, 6, rank=2), 2, "quad_scale"),
        PolyLinear(6, 6, rank=0),
        with_gate(SigmaPiLinear(6, 5), 3),
    )


def gates_of(model: nn.Module) -> dict[str, float]:
    """Read without our code: the public layers' parameters by name."""
    return {
        name.rsplit(".", 1)[0]: by_hand(parameter)
        for name, parameter in model.named_parameters()
        if name.endswith(("pi_scale", "quad_scale"))
    }


def test_every_public_layer_is_found_and_one_without_a_gate_is_not() -> None:
    model = make_model()
    wanted = gates_of(model)
    assert set(wanted) == {"0", "3", "5"}
    scales = pi_scales(model)
    assert {name: scale.item() for name, scale in scales.items()} == pytest.approx(wanted)
    assert all(scale.ndim == 0 and scale.dtype == torch.float32 for scale in scales.values())
    assert not any(scale.requires_grad for scale in scales.values())


def test_the_mean_is_the_first_blocks_as_the_layers_themselves_say() -> None:
    model = make_model()
    assert pi_scale_mean(model) == pytest.approx(model[0].pi_scale_mean())
    assert pi_scale_mean(model[1:]) == pytest.approx(model[3].quad_scale_mean())
    assert pi_scale_mean(model[5]) == pytest.approx(model[5].pi_scale_mean())
    assert isinstance(pi_scale_mean(model), float)


def test_fresh_layers_have_the_gate_of_the_paper() -> None:
    assert pi_scale_mean(SigmaPiLinear(4, 3)) == pytest.approx(math.exp(-2))
    assert pi_scales(SigmaPiLinear(4, 3))[""].item() == pytest.approx(math.exp(-2))


def test_it_is_the_mean_of_exponentials_not_the_exponential_of_the_mean() -> None:
    assert pi_scale_mean(torch.tensor([0.0, math.log(3.0)])) == pytest.approx(2.0)


def test_tensors_parameters_and_objects_are_read() -> None:
    gate = nn.Parameter(torch.tensor([0.0, 1.0]))
    wanted = by_hand(gate)
    assert pi_scale_mean(gate) == pytest.approx(wanted)
    assert pi_scale_mean(gate.data) == pytest.approx(wanted)
    assert pi_scale_mean(SimpleNamespace(pi_scale=gate)) == pytest.approx(wanted)
    assert pi_scale_mean(SimpleNamespace(pi_scale=None, quad_scale=gate)) == pytest.approx(wanted)


@pytest.mark.parametrize(
    "nothing", [nn.Linear(2, 2), PolyLinear(4, 4, rank=0), object(), SimpleNamespace(pi_scale=1.0)]
)
def test_no_gate_is_an_error_in_the_mean_and_an_empty_dict_in_all(nothing: object) -> None:
    with pytest.raises(ValueError, match=r"expected a Sigma-Pi gate, but .* has no tensor attribute named pi_scale"):
        pi_scale_mean(nothing)
    if isinstance(nothing, nn.Module):
        assert pi_scales(nothing) == {}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_halves_are_read_in_float32_and_doubles_in_float64(dtype: torch.dtype) -> None:
    layer = with_gate(SigmaPiLinear(4, 999), 5).to(dtype)
    wanted = by_hand(layer.get_parameter("pi_scale"))
    scale = pi_scales(layer)[""]
    assert scale.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert scale.item() == pytest.approx(wanted, rel=1e-6)
    assert pi_scale_mean(layer) == pytest.approx(wanted, rel=1e-6)


def test_autocast_does_not_narrow_a_gate() -> None:
    layer = with_gate(SigmaPiLinear(4, 999), 5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert pi_scales(layer)[""].item() == pytest.approx(by_hand(layer.get_parameter("pi_scale")), rel=1e-6)


class Doubled(nn.Module):
    def forward(self, value: Tensor) -> Tensor:
        return 2 * value


def test_a_parametrised_gate_is_read_as_the_layer_reads_it() -> None:
    model = make_model()
    raw = model[5].pi_scale.detach().clone()
    parametrize.register_parametrization(model[5], "pi_scale", Doubled())
    assert not any(name.endswith("pi_scale") and name.startswith("5") for name, _ in model.named_parameters())
    assert pi_scales(model)["5"].item() == pytest.approx(by_hand(2 * raw))


def test_names_are_those_without_wrappers() -> None:
    model = make_model()
    wanted = gates_of(model)
    nested = copy.deepcopy(model)
    nested[5] = checkpoint_wrapper(nested[5])
    nested[3] = torch.compile(nested[3], backend="eager")
    wrapped: dict[str, Any] = {
        "compiled": torch.compile(model, backend="eager"),
        "DataParallel": nn.DataParallel(model),
        "averaged": AveragedModel(model),
        "nested": nested,
        "compiled around nested": torch.compile(nn.DataParallel(nested), backend="eager"),
    }
    for name, wrapper in wrapped.items():
        scales = {block: scale.item() for block, scale in pi_scales(wrapper).items()}
        assert scales == pytest.approx(wanted), name
        assert pi_scale_mean(wrapper) == pytest.approx(wanted["0"]), name


def test_a_compiled_model_is_read_after_it_ran_and_learned() -> None:
    layer = with_gate(SigmaPiLinear(4, 3), 1)
    compiled = torch.compile(layer, backend="eager")
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    before = pi_scale_mean(compiled)
    compiled(torch.randn(8, 4)).square().sum().backward()
    optimizer.step()
    assert pi_scale_mean(compiled) == pytest.approx(by_hand(layer.get_parameter("pi_scale")))
    assert pi_scale_mean(compiled) != before


def test_a_wrapper_that_forwards_attributes_is_no_second_block() -> None:
    compiled: Any = torch.compile(SigmaPiLinear(4, 3), backend="eager")
    assert set(pi_scales(compiled)) == {""}
    assert set(pi_scales(nn.Sequential(checkpoint_wrapper(SigmaPiLinear(4, 3))))) == {"0"}


def test_an_honest_name_module_stays() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = SigmaPiLinear(4, 3)
            self.head = nn.Linear(3, 2)

    assert set(pi_scales(Net())) == {"module"}
    assert set(pi_scales(nn.DataParallel(Net()))) == {"module"}


def test_a_shared_module_counts_once() -> None:
    block = SigmaPiLinear(4, 4)
    assert set(pi_scales(nn.Sequential(block, nn.ReLU(), block))) == {"0"}


def test_a_block_with_two_gates_shows_both() -> None:
    block = nn.Module()
    block.pi_scale = nn.Parameter(torch.zeros(2))
    block.register_buffer("quad_scale", torch.ones(2))
    assert {name: round(scale.item(), 4) for name, scale in pi_scales(nn.Sequential(block)).items()} == {
        "0": 1.0,
        "0.quad_scale": 2.7183,
    }


def test_whole_gates_are_there_for_histograms() -> None:
    model = make_model()
    values = gate_values(model)
    assert torch.allclose(values["5"], model[5].pi_scale.detach().exp())
    assert {name: value.mean().item() for name, value in values.items()} == pytest.approx(gates_of(model))


def test_reading_waits_for_no_device_and_changes_nothing() -> None:
    with torch.device("meta"):
        assert pi_scales(nn.Sequential(SigmaPiLinear(4, 3)))["0"].shape == ()
    model = make_model()
    before = copy.deepcopy(model.state_dict())
    pi_scales(model)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
