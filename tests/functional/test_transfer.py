"""Transfer to another population, by hand."""

import math

import pytest

from polyweave_torch.functional import estimate_channel, predict_transfer, transfer_residual


def test_transfer_residual_by_hand() -> None:
    calibration = estimate_channel([[40, 10], [5, 45]], smoothing=0)  # c = .2, gamma = .1
    residual = transfer_residual(calibration, [[30, 20], [5, 45]])  # p0 = .5, p1 = .65; predicted .55
    assert float(residual.predicted) == pytest.approx(0.55)
    assert float(residual.residual) == pytest.approx(0.10)
    assert float(residual.standardized_residual) == pytest.approx(0.10 / math.sqrt(0.55 * 0.45 / 100))
    within = (0.5 * 0.2 * 0.8 + 0.5 * 0.1 * 0.9) / 100
    calibrated = 0.25 * 0.2 * 0.8 / 50 + 0.25 * 0.1 * 0.9 / 50
    assert float(residual.paired_standardized_residual) == pytest.approx(0.10 / math.sqrt(within + calibrated))
    assert [int(residual.target_n), float(residual.target_p0), float(residual.target_p1)] == [100, 0.5, 0.65]
    assert [float(residual.calib_c), float(residual.calib_gamma)] == [0.2, 0.1]


def test_a_certain_prediction_has_no_standard_error() -> None:
    certain = estimate_channel([[0, 5], [0, 5]], smoothing=0)  # predicts accuracy 1
    met = transfer_residual(certain, [[0, 3], [0, 3]])
    assert (float(met.standardized_residual), float(met.paired_standardized_residual)) == (0.0, 0.0)
    missed = transfer_residual(certain, [[1, 2], [0, 3]])
    assert float(missed.standardized_residual) == -math.inf
    nothing = transfer_residual(certain, [[0, 0], [0, 0]])
    assert nothing.standardized_residual.isnan()
    assert nothing.paired_standardized_residual.isnan()


def test_an_empty_calibration_group_matters_only_with_weight() -> None:
    only_wrong = estimate_channel([[5, 5], [0, 0]])
    assert transfer_residual(only_wrong, [[1, 2], [1, 2]]).paired_standardized_residual.isnan()
    assert not transfer_residual(only_wrong, [[2, 4], [0, 0]]).paired_standardized_residual.isnan()


def test_predict_transfer_of_the_calibration_is_its_own_accuracy() -> None:
    channel = estimate_channel([[49, 32], [114, 305]], smoothing=0)
    assert float(predict_transfer(channel, channel.p0)) == pytest.approx(float(channel.p1), abs=1e-15)


@pytest.mark.parametrize("n", range(11))
def test_a_residual_of_rounding_alone_is_no_surprise(n: int) -> None:
    # A certain channel that turns every answer round: the forecast of the target is exact, but for rounding.
    channel = estimate_channel([[0, 10], [10, 0]], smoothing=0)
    assert transfer_residual(channel, [[0, 10 - n], [n, 0]]).paired_standardized_residual.item() == 0.0
