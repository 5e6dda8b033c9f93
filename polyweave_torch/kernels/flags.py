"""Sums of flags kept in bytes."""

import torch
import torch.nn.functional as F
from torch import Tensor

# Bytes of 255 words of int64: chunks that are multiples of it can be summed a word at a time.
LANE_SAMPLES = 255 * 8


def row_sums(flags: Tensor) -> Tensor:
    """Sums over the rows of contiguous zeros and ones ``[R, n]``.

    ATen widens bytes to int64 before it adds them, all at once. Faster: add eight bytes at a time as one word, as many
    words as can't carry from one byte into the next.
    """
    rows, samples = flags.shape
    if samples < LANE_SAMPLES or flags.element_size() == 8:
        return flags.sum(1)
    if samples % LANE_SAMPLES:
        flags = F.pad(flags, (0, -samples % LANE_SAMPLES))
    words = flags.view(torch.int64).view(rows, -1, 255).sum(-1)
    lanes = torch.uint8 if flags.element_size() == 1 else flags.dtype
    return words.view(lanes).view(rows, -1).sum(-1)
