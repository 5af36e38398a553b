"""Private discoveries: what others rely on. docs/discoveries.md has the mathematics on one page."""

from synth_platform.discovery.canonical import privatise
from synth_platform.discovery.e_bh import e_bh
from synth_platform.discovery.peeling import peel
from synth_platform.discovery.selection import gumbel_scale
from synth_platform.discovery.threshold import calibrated_threshold, calibration_constant

__all__ = ["calibrated_threshold", "calibration_constant", "e_bh", "gumbel_scale", "peel", "privatise"]
