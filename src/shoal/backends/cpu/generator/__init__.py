# SPDX-License-Identifier: Apache-2.0
"""Write the module of a phase: its rules, its operators' kernels and the loop over supersteps."""

from shoal.backends.cpu.generator.phase import PhaseSource, write_phase
from shoal.backends.cpu.generator.signature import numba_signature
from shoal.backends.cpu.generator.worklist import write_worklist

__all__ = ["PhaseSource", "numba_signature", "write_phase", "write_worklist"]
