# SPDX-License-Identifier: GPL-2.0-only
"""How to get what is missing, in words that end a message.

In a checkout that is a make target. An installed ceasefire has packages for most of it; what only a
checkout makes is used from there, by CEASEFIRE_BUILD.
"""

from ceasefire import paths

_DEPS = "run `make deps`"
VIRTME = "virtme-ng==1.42"
"""What guests are tested with; requirements.in and pyproject.toml name the same."""

_FROM_A_CHECKOUT = (
    "in a checkout of ceasefire and set CEASEFIRE_BUILD to what its scripts/paths prints"
)


def system(package: str) -> str:
    """Return how to get a program of Debian's that guests or measurements need."""
    return f"run `apt install {package}`" if paths.checkout() is None else _DEPS


def virtme() -> str:
    """Return how to get virtme-ng in the version that guests are tested with; Debian has others."""
    if paths.checkout() is not None:
        return _DEPS
    return f"run `pipx install {VIRTME}`"


def module(package: str) -> str:
    """Return how to get a Python module that ceasefire imports. package: Debian's name of it."""
    if paths.checkout() is not None:
        return _DEPS
    return f"run `apt install {package}`, or install ceasefire again with pipx"


def applications() -> str:
    """Return how to get programs that are measured; the message names them."""
    if paths.checkout() is not None:
        return "run `make deps-bench`"
    return "install them, as `make deps-bench` in a checkout of ceasefire does"


def tools(package: str) -> str:
    """Return how to get what `make tools` builds. package: ours that has it."""
    if paths.checkout() is not None:
        return "run `make tools`"
    return f"install the package {package}, or run `make tools` {_FROM_A_CHECKOUT}"


def made(target: str) -> str:
    """Return how to get what no package has: kernels, the checking emulator."""
    if paths.checkout() is not None:
        return f"run `make {target}`"
    return f"run `make {target}` {_FROM_A_CHECKOUT}"


def kernel(kind: str) -> str:
    """Return how to get one of paths.KERNEL_KINDS."""
    return made("kernel" if kind == "run" else f"kernel-{kind}")
