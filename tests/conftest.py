# SPDX-License-Identifier: Apache-2.0
"""Settings that every test shares: how hypothesis searches, and that Ctrl-C is heard."""

import os
import signal

from hypothesis import HealthCheck, settings

# The first example of a test may compile kernels, so no example has a deadline and slow ones are no error.
settings.register_profile("quick", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("quick"), derandomize=True, print_blob=True)
settings.register_profile("long", settings.get_profile("quick"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "quick"))

# What a shell starts in the background ignores Ctrl-C, and so do the processes it starts: tests press it on those.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
