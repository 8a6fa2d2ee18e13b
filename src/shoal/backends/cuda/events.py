# SPDX-License-Identifier: Apache-2.0
"""Events of streams: whether a GPU has come so far, or failed on its way."""

from __future__ import annotations

from typing import Any

from shoal.errors import ShoalError
from shoal.machine import import_cupy

_SUCCESS, _NOT_READY = 0, 600  # what CUDA says of an event; all else is an error


def has_come(event: Any) -> bool:
    """Whether a stream has come to an event; an error of the GPU is raised, of which CuPy's ``done`` says nothing."""
    status = import_cupy().cuda.runtime.eventQuery(event.ptr)
    if status not in (_SUCCESS, _NOT_READY):
        try:
            event.synchronize()
        except Exception as error:
            raise ShoalError(f"the GPU failed: {error}; if it runs rules of your own, one of them may reach beyond "
                             "its arrays") from error  # fmt: skip
    return bool(status == _SUCCESS)
