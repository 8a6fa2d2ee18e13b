# SPDX-License-Identifier: Apache-2.0
"""What every rank runs in tests/test_generate_on_ranks.py: drawing a graph into the parts of devices.

    mpiexec -n 2 python tests/drawing_program.py FOLDER OPTIONS [STAGE]

OPTIONS are those of the graph and those of the partition, as JSON.  With a stage, the last rank has a full disk there;
at the manifest, the first one, as no other writes it.
"""

import json
import sys

from mpi4py import MPI

from shoal import generate
from shoal.sharding import external_sort, key_files, part_files, stages
from shoal.sharding.partition_files import partition_pieces

STAGES = {
    "survey": (stages.Surveyor, "survey"),
    "spread": (key_files.KeyFiles, "spread"),
    "sort": (external_sort, "_write_rows"),
    "parts": (part_files.ShardFile, "add"),
    "copies": (part_files._Writer, "write_copies"),
    "manifest": (stages, "write_manifest"),
}


def fail(*args, **options):
    """Do what a full disk does."""
    raise OSError(28, "No space left on device")


def main(folder, text, stage=None):
    """Draw."""
    drawing, options = json.loads(text)
    if isinstance(drawing.get("weights"), list):
        drawing["weights"] = tuple(drawing["weights"])
    failing = 0 if stage == "manifest" else MPI.COMM_WORLD.size - 1
    if stage is not None and MPI.COMM_WORLD.rank == failing:
        setattr(*STAGES[stage], fail)
    generate.PIECE_EDGES = 1000
    partition_pieces(generate.rmat_pieces(**drawing), folder, **options)


main(*sys.argv[1:])
