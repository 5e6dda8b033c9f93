"""The samples that a DistributedSampler repeats to give every rank equally many."""

from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DistributedSampler


def padding_mask(sampler: DistributedSampler[Any]) -> Tensor:
    """Which of this rank's samples are real: False marks the duplicate that pads the rank.

    With N samples on W ranks and N % W != 0, each rank r >= N % W ends with one sample that another rank has too. A
    metric that counts it is biased; pass the mask of each batch, ``mask[start : start + batch_size]``, to ``update``.
    (:class:`~polyweave_torch.OutcomeMemory` needs none: it addresses samples by index.)

    Args:
        sampler: this rank's sampler, as its DataLoader uses it.

    Returns:
        bool ``[len(sampler)]`` on the CPU, in the order in which the sampler gives the samples.

    Raises:
        TypeError: where the sampler is no ``DistributedSampler``, so that nothing is known of its padding.

    Example:
        >>> from torch.utils.data import DistributedSampler
        >>> padding_mask(DistributedSampler(range(5), num_replicas=2, rank=1))
        tensor([ True,  True, False])
    """
    if not isinstance(sampler, DistributedSampler):
        raise TypeError(
            f"sampler must be a DistributedSampler, but is a {type(sampler).__name__}; other samplers pad in ways of "
            "their own, or not at all"
        )
    # Rank r takes places r, r + W, r + 2W, ... of the padded list, whose places from N on are repetitions.
    place = sampler.rank + sampler.num_replicas * torch.arange(len(sampler))
    samples: int = len(sampler.dataset)  # type: ignore[arg-type]
    return place < samples
