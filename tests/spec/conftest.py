"""Property tests draw the same examples in every run, and look for wrong answers, not for slow ones."""

from hypothesis import settings

settings.register_profile("stable", deadline=None, derandomize=True)
settings.load_profile("stable")
