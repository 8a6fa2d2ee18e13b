# SPDX-License-Identifier: Apache-2.0
"""Write the persistent kernel of a phase."""

from shoal.backends.cuda.generator.phase import PhaseSource, blocks_per_processor, write_phase
from shoal.backends.cuda.generator.worklist import write_worklist

__all__ = ["PhaseSource", "blocks_per_processor", "write_phase", "write_worklist"]
