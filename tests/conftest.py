"""What holds for all tests."""

from hypothesis import HealthCheck, settings

# A machine that is busy with something else must not make a test fail: nothing here is about time.
settings.register_profile(
    "ottla", deadline=None, suppress_health_check=(HealthCheck.too_slow,), print_blob=True
)
settings.load_profile("ottla")
