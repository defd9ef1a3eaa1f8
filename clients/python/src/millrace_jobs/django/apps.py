"""The app, as Django knows it."""

from django.apps import AppConfig


class MillraceConfig(AppConfig):
    """The app ``millrace_jobs.django``."""

    name = "millrace_jobs.django"
    label = "millrace_jobs"
    verbose_name = "Millrace"
