"""What holds for all tests."""

import signal

from hypothesis import HealthCheck, settings

# A shell makes what runs in the background ignore Ctrl-C, and what tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A machine that is busy with something else must not make a test fail: nothing here is about time.
settings.register_profile(
    "ottla", deadline=None, suppress_health_check=(HealthCheck.too_slow,), print_blob=True
)
settings.load_profile("ottla")
