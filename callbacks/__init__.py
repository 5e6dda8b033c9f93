"""Lightning callbacks: what a validation corrected and corrupted, whether it is more than chance, when to stop.

Also the votes of an ensemble, and Sigma-Pi gates.
"""

from polyweave_torch.callbacks._monitor import SampleOutcomes
from polyweave_torch.callbacks._observe import observe
from polyweave_torch.callbacks.channel import ChannelMonitor
from polyweave_torch.callbacks.early_stopping import PairedEarlyStopping
from polyweave_torch.callbacks.ensemble import EnsembleMonitor
from polyweave_torch.callbacks.pi_scale import PiScaleMonitor
from polyweave_torch.callbacks.significance import SignificanceMonitor

__all__ = [
    "ChannelMonitor",
    "EnsembleMonitor",
    "PairedEarlyStopping",
    "PiScaleMonitor",
    "SampleOutcomes",
    "SignificanceMonitor",
    "observe",
]
