"""The tail of the chi-square distribution, shared by the tests that have one."""

import torch
from scipy import special
from torch import Tensor


def chi_square_tail(statistic: Tensor, df: Tensor) -> Tensor:
    """P(chi-square on df degrees of freedom >= statistic), float64; without a degree of freedom 1, of NaN NaN."""
    tail = torch.as_tensor(special.gammaincc(df.clamp(min=1).numpy() / 2.0, statistic.numpy() / 2.0))
    return tail.where((df > 0) | statistic.isnan(), 1.0)
