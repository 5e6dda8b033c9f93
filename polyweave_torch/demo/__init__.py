"""The experiment that ``make demo`` runs: two ensembles on handwritten digits, compared sample by sample."""

from polyweave_torch.demo.experiment import run_demo

__all__ = ["run_demo"]
