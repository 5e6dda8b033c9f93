"""The vote of an ensemble as a sorting network: a plain form for any device, and a Triton kernel for GPUs."""
