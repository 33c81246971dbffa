"""For all tests with other programs."""
import pytest

import kinds_log


@pytest.fixture(scope="session")
def kinds(tmp_path_factory):
    """A log with a value of every kind, one for all tests: they only read it."""
    return kinds_log.write(tmp_path_factory.mktemp("kinds") / "log")
