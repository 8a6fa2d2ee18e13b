# SPDX-License-Identifier: Apache-2.0
"""Compiled phases: the module of each is written and compiled once for a recording and the types of a graph."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shoal.backends.base import Types
from shoal.backends.cpu.generator import PhaseSource, numba_signature, write_phase, write_worklist
from shoal.backends.cpu.modules import load_loop
from shoal.backends.loops.recordings import recording_key, types_used
from shoal.operators import Recording, check_phase, force_direction, mark_outputs, record
from shoal.program import Phase, Program, field_dtype

_phases: dict[Any, LoadedPhase] = {}
_phases_lock = threading.Lock()


@dataclass(frozen=True)
class LoadedPhase:
    """A compiled phase."""

    loop: Callable
    source: PhaseSource

    @property
    def uses_in_edges(self) -> bool:
        """Whether it looks at incoming edges."""
        return self.source.uses_in_edges

    @property
    def is_open(self) -> bool:
        """Whether only the run shows how much room it needs."""
        return self.source.flow.is_open and not self.source.is_asynchronous


def load_phase(
    program: Program, phase: Phase, types: Types, direction: str = "auto", duplication: str | None = None,
    priority: str | None = None, stealing: str = "none",
) -> LoadedPhase:  # fmt: skip
    """Compile a phase for the types of a graph, or find it compiled.

    With ``duplication`` for several devices, which with ``stealing`` visit edges for one another; with ``priority``
    (``"soft"`` or ``"none"``) without supersteps.
    """
    recording = record(program, phase.step)
    force_direction(recording, direction)
    check_phase(recording, phase)
    if duplication is not None:
        mark_outputs(recording)
    types = types_used(recording, types)
    key = (recording_key(recording, phase), types, duplication, priority, stealing)
    loaded = _phases.get(key)
    if loaded is None:
        loaded = _compile(program, recording, phase, types, duplication, priority, stealing)
        with _phases_lock:
            _phases[key] = loaded
    return loaded


def _compile(
    program: Program, recording: Recording, phase: Phase, types: Types, duplication: str | None, priority: str | None,
    stealing: str,
) -> LoadedPhase:  # fmt: skip
    title = type(program).__name__
    vertex, edge, weight = types
    dtypes = {name: field_dtype(declared, vertex) for name, declared in recording.fields.items()}
    how: dict[str, Any] = {"is_weighted": weight is not None, "title": title, "duplication": duplication}
    if priority is None:
        source = write_phase(recording, phase, dtypes, stealing=stealing, **how)
    else:
        source = write_worklist(recording, phase, dtypes, has_priority=priority == "soft", **how)
    signature = numba_signature(recording.fields, dtypes, source, vertex, edge, weight)
    return LoadedPhase(load_loop(source, signature, title), source)
