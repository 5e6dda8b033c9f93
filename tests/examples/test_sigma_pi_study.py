"""examples/sigma_pi_study.py: gates from the weights, changes from the nets, tests by scipy and statsmodels."""

import numpy as np
import pytest
import torch
from scipy.stats import binomtest, chi2
from sklearn.datasets import load_digits
from statsmodels.stats.multitest import multipletests

from tests.examples.running import Ran, load, normal, run, shown


@pytest.fixture(scope="module")
def ran() -> Ran:
    return run(load("sigma_pi_study").main)


def rows(printed: str) -> list[list[float]]:
    return [[float(cell.rstrip("%")) for cell in line.split()] for line in printed.splitlines()[1:]]


def test_the_arms_differ_in_the_product_alone() -> None:
    example = load("sigma_pi_study")
    nets = []
    for product in (False, True):
        torch.manual_seed(0)
        nets.append(example.Net(product))
    plain, sigma_pi = nets
    for name, value in plain.state_dict().items():
        assert torch.equal(value, sigma_pi.state_dict()[name]), name
    x = torch.rand(5, 4, 4, 4)
    additive = plain.block.sigma_conv(x - x.mean((2, 3), keepdim=True))
    torch.testing.assert_close(plain.block(x), torch.relu(plain.block.bn(additive)))
    assert not torch.allclose(plain.block(x), sigma_pi.block(x))


def test_growth_is_that_of_the_weights(ran: Ran) -> None:
    for row, (_, net, _) in zip(rows(ran.printed), ran.result, strict=True):
        gate = net.block.pi_scale.detach().numpy()
        assert row[1] == round(float(np.exp(gate).mean() - np.exp(-2.0)), 4)


def test_changes_are_those_of_the_predictions(ran: Ran) -> None:
    digits = load_digits()
    images = torch.tensor(digits.images[500:, None] / 16 + 0.1)
    p_values = []
    for row, (counts, net, _) in zip(rows(ran.printed), ran.result, strict=True):
        with torch.inference_mode():
            right = net.double()(images).argmax(1).numpy() == digits.target[500:]
        (_, corrected), (corrupted, kept) = counts.tolist()
        assert counts.sum() == len(right) == 1297
        assert corrected + kept == right.sum()
        assert row[3:7] == [round((corrupted + kept) / 1297, 3), round(right.mean(), 3), corrected, corrupted]
        changed = corrected + corrupted
        exact = binomtest(corrected, changed).pvalue
        edwards = chi2.sf(max(0, abs(corrected - corrupted) - 1) ** 2 / changed, 1)
        p_values.append(float(exact if changed < 25 else edwards))
    adjusted = multipletests(p_values, method="holm")[1]
    assert [row[7] for row in rows(ran.printed)] == [float(f"{p:.2g}") for p in adjusted]


def test_the_page_quotes_the_output(ran: Ran) -> None:
    assert normal(ran.printed) == shown("sigma_pi_study")
