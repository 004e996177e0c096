"""The pytest plug-in of watchdog_client, under the name by which a conftest.py loads it: pytest_plugins = ["pytest_watchdog"]."""

from watchdog_client.pytest_plugin import *  # noqa: F401,F403
